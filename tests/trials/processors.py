"""All experiments have the same bits under the settings of other processors."""

import dataclasses
import functools
import tempfile
from pathlib import Path

from tests.processors.experiments import write_dense
from tests.processors.settings import HOST, OTHERS, Setting


@dataclasses.dataclass(frozen=True)
class Trial:
    """One setting."""

    setting: Setting


def choose(seed: int, number: int) -> Trial:
    """One after the other."""
    return Trial(OTHERS[number % len(OTHERS)])


def attempt(trial: Trial) -> tuple[str, bool]:
    """The results that differ from this processor's; whether it has what the setting needs."""
    if trial.setting.lacks():
        return "", False
    host, other = _digests(HOST), _digests(trial.setting)
    return "; ".join(result for result in host if other[result] != host[result]), True


@functools.cache
def _digests(setting: Setting) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as name:
        write_dense(Path(name) / "dense.txt")
        return setting.digests(Path(name) / "dense.txt", "all", Path(name))
