"""The recipes of containers, as text: no container is built here."""

import configparser
import re

import pytest

from tests.comm.jobs import ROOT

RECIPES = ("Dockerfile", "apptainer.def")


def recipe(name):
    return (ROOT / "tools" / name).read_text()


@pytest.mark.parametrize("name", RECIPES)
def test_what_is_installed_is_there(name):
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    [extras] = re.findall(r"pip install --no-cache-dir '/opt/mpisim\[(.*)\]'", recipe(name))
    assert set(extras.split(",")) <= set(setup["options.extras_require"])
    [version] = re.findall(r"python:(\S+)-slim", recipe(name))
    assert f"Python :: {version}\n" in setup["metadata"]["classifiers"] + "\n"
    for file in re.findall(r"/opt/mpisim/(\S+\.py)", recipe(name)):
        assert (ROOT / file).is_file()
    assert name in (ROOT / "docs/how-to/cluster.md").read_text()


def test_open_mpi_has_the_same_settings_everywhere():
    message = dict(
        re.findall(r'^export (\w+_MCA_\w+|OMPI_ALLOW\w+)="\$\{\w+:-(.*)\}"', OPENMPI, re.M)
    )
    settings = dict(re.findall(r"((?:OMPI|PRTE)_\w+)=(\S+)", recipe("Dockerfile")))
    assert len(settings) == 4 and settings.items() <= message.items()


OPENMPI = (ROOT / "tools" / "env.openmpi").read_text()
