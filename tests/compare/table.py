"""From experiments.toml to the command lines that are compared."""

import fnmatch
import hashlib
import importlib.util
import itertools
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

TABLES = ("problem", "method", "compressor", "run", "sweep", "fleet", "attack", "server")
LAYOUTS = {"s": "shared", "d": "dedicated"}
STAGES = (1, 3, 1)  # ranks of the jobs, one stage after the other


class Step(NamedTuple):
    """A command line, what its experiment file holds, and the stage at which it runs."""

    key: str
    argv: list[str]
    tables: dict[str, Any]
    stage: int


# The command lines that write a log, or a folder of logs, by its name.
Experiments = dict[str, list[Step]]


def experiments(pattern: str) -> Experiments:
    """The experiments whose name matches ``pattern``."""
    result: Experiments = {}
    text = Path(__file__).with_name("experiments.toml").read_text(encoding="utf-8")
    for grid in tomllib.loads(text)["grid"]:
        named = {n: steps for n, steps in of_grid(grid) if fnmatch.fnmatch(n, pattern)}
        if named and "needs" in grid and importlib.util.find_spec(grid["needs"]) is None:
            print(f"{grid['needs']} is not installed: {len(named)} experiments skipped")
        else:
            result |= named
    return result


def product_of(grid: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tables of each experiment of a grid."""
    axes = grid.get("vary", {}).items()
    for choice in itertools.product(*([{k: c} if k in TABLES else c for c in v] for k, v in axes)):
        tables = {name: grid[name] for name in TABLES if name in grid}
        for change in choice:
            tables |= {name: tables.get(name, {}) | keys for name, keys in change.items()}
        yield tables


def of_grid(grid: dict[str, Any]) -> Iterator[tuple[str, list[Step]]]:
    """The product of a grid's alternatives, at each of its places."""
    for tables in product_of(grid):
        words = [grid["name"], *(tables.get(t, {}).get("name") for t in ("method", "compressor"))]
        name = "-".join([*filter(None, words), digest(tables)])
        either = ["1s", "3s" if int(digest(tables), 16) % 2 else "3d"]
        for place in grid.get("places", either):
            full = f"{name}-{re.sub(':[0-9]+ ?', '', place)}"
            commands = grid.get("commands", ["run FILE --out LOG --force"])
            yield full, list(steps(full, tables, place.split(), commands))


def steps(
    name: str, tables: dict[str, Any], parts: list[str], commands: list[str]
) -> Iterator[Step]:
    """All commands at one place, or a run in several parts, each gone on with from a checkpoint."""
    if len(parts) > 1:
        commands = [f"run FILE --out LOG --{'resume' if i else 'force'}" for i in range(len(parts))]
    stage = 0
    for number, (command, part) in enumerate(zip(commands, itertools.cycle(parts), strict=False)):
        place, _, rounds = part.partition(":")
        stage = STAGES.index(int(place[0]), stage)
        run = tables["run"] | {"layout": LAYOUTS[place[1]]}
        run |= {"rounds": int(rounds)} if rounds else {}
        files = {"FILE": f"{name}.{number}.toml", "LOG": f"{name}.h5", "FOLDER": name}
        argv = [files.get(word, word) for word in command.split()]
        experiment = tables | {"run": run}
        yield Step(f"{' '.join(argv)} #{digest(experiment)}", argv, experiment, stage)


def digest(tables: Any) -> str:
    """A few digits that stand for an experiment."""
    return hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()[:8]
