"""Which logs show the same setting with other seeds, and what tells the settings apart."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

from mpisim.analysis import labels as words
from mpisim.runs.log.reader import Log

# Keys that say how long, how often or under which name a setting is run: no setting of their own.
NOT_A_SETTING = {"title", "run.seed", "run.rounds", "run.log_every", "run.checkpoint_seconds"}
MISSING = object()


@dataclasses.dataclass
class Setting:
    """Logs whose experiments differ only in the seed.

    ``method`` and ``variant`` are the two halves of the label in a legend; either may be empty.
    """

    logs: list[Log]
    keys: dict[str, Any]
    method: str = ""
    variant: str = ""

    @property
    def label(self) -> str:
        """The text in the legend."""
        return ", ".join(part for part in (self.method, self.variant) if part)


def group(logs: Iterable[Log], by_ranks: bool = False) -> list[Setting]:
    """Settings in the order of their first logs, labelled by exactly what differs between them.

    With ``by_ranks`` (clocks are drawn) the number of ranks and run/netlab's network are settings,
    too.
    """
    found: dict[str, Setting] = {}
    for log in logs:
        keys = {k: v for k, v in flatten(log.config).items() if k not in NOT_A_SETTING}
        if by_ranks:
            keys |= {key: log.attrs[key] for key in ("ranks", "network") if key in log.attrs}
        if not log.config:
            keys["file"] = log.path.stem
        identity = json.dumps(keys, sort_keys=True, default=str)
        found.setdefault(identity, Setting([], keys)).logs.append(log)
    settings = list(found.values())
    _label(settings)
    return settings


def flatten(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """``{"a": {"b": 1}}`` as ``{"a.b": 1}``; a step ``{theory = 4.0}`` stays one value."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict) and value.keys() != {"theory"}:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def differing(settings: list[Setting]) -> list[str]:
    """Keys that do not have the same value in all settings; a key that is absent counts."""
    keys = dict.fromkeys(key for setting in settings for key in setting.keys)
    return [
        key for key in keys if any(_get(s, key) != _get(settings[0], key) for s in settings[1:])
    ]


def _get(setting: Setting, key: str) -> Any:
    return setting.keys.get(key, MISSING)


def _label(settings: list[Setting]) -> None:
    apart = differing(settings)
    methods = any(key == "method.name" for key in apart)
    compressors = any(key.startswith("compressor.") for key in apart)
    for setting in settings:
        alike = [s for s in settings if _get(s, "method.name") == _get(setting, "method.name")]
        own = [key for key in differing(alike) if key.startswith("method.")]
        setting.method = _method_text(setting, methods, own)
        parts = [_compressor_text(setting, settings)] if compressors else []
        rest = [k for k in apart if k.partition(".")[0] not in ("method", "compressor")]
        parts += [_other_text(key, setting.keys[key]) for key in rest if key in setting.keys]
        setting.variant = ", ".join(parts)
    _tell_apart(settings)


def _method_text(setting: Setting, named: bool, own: list[str]) -> str:
    parameters = ", ".join(
        words.parameter(key.partition(".")[2], setting.keys[key])
        for key in own
        if key in setting.keys and key != "method.name"
    )
    if not named:
        return parameters
    name = words.method(str(setting.keys.get("method.name", "")))
    return f"{name} ({parameters})" if parameters else name


def _compressor_text(setting: Setting, settings: list[Setting]) -> str:
    table = setting.logs[0].config.get("compressor", {})
    alike = [s for s in settings if _get(s, "compressor.name") == _get(setting, "compressor.name")]
    also = {key.rpartition(".")[2] for key in differing(alike) if key.startswith("compressor.")}
    return words.compressor(table, also)


def _other_text(key: str, value: Any) -> str:
    """A setting of the problem or the run that differs."""
    name = key.rpartition(".")[2]
    if key in ("problem.name", "problem.data", "file"):
        return words.PROBLEMS.get(str(value), str(value))
    if name == "ranks":
        return f"{value} ranks"
    if key in ("problem.split", "run.wire", "run.layout", "run.dtype"):
        return {"run.wire": "{} sent", "run.dtype": "{} arithmetic"}.get(key, "{} " + name).format(
            value
        )
    return words.parameter(name, value)


def _tell_apart(settings: list[Setting]) -> None:
    """No two curves with one label: add every key that differs between those that share one."""
    by_label: dict[str, list[Setting]] = {}
    for setting in settings:
        by_label.setdefault(setting.label, []).append(setting)
    for alike in by_label.values():
        if len(alike) < 2:
            continue
        for setting in alike:
            extra = [f"{key} = {setting.keys.get(key, '-')}" for key in differing(alike)]
            setting.variant = ", ".join([setting.variant, *extra] if setting.variant else extra)
