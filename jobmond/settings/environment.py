"""`JOBMOND_*`: settings from the environment, which win over the file."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from jobmond.settings.shape import Path, Shape, dotted, fold, nearest

PREFIX = "JOBMOND_"
# Ours, and no settings: where the configuration is; whether tests may skip what they cannot run.
_OTHER = frozenset({"JOBMOND_CONFIG", "JOBMOND_REQUIRE_LIVE"})


class Environment(PydanticBaseSettingsSource):
    """The settings in `env`, nested like the file (`JOBMOND_CLUSTERS__LEONARDO__ACTIVE`).

    `data` is what the file holds: names that people chose are found in it whatever their case
    and dashes. `origins` says which variable a value came from; `warnings` has one line for each
    variable that means nothing.
    """

    def __init__(
        self, settings: type[BaseSettings], env: Mapping[str, str], data: Mapping[str, Any]
    ) -> None:
        super().__init__(settings)
        self.origins: dict[Path, str] = {}
        self.warnings: list[str] = []
        self._values: dict[str, Any] = {}
        names = sorted(n for n in env if n.startswith(PREFIX) and n not in _OTHER and env[n])
        # A variable that says what kind a new table is comes before those that need to know.
        for name in sorted(names, key=lambda name: not name.endswith("__KIND")):
            self._take(name, env[name], settings, data)

    def _take(
        self, name: str, text: str, settings: type[BaseSettings], data: Mapping[str, Any]
    ) -> None:
        found = self._place(name.removeprefix(PREFIX).split("__"), Shape(settings), data)
        if isinstance(found, str):
            self.warnings.append(f"{name} is ignored: {found}")
            return
        self.origins[found] = name
        table = self._values
        for part in found[:-1]:
            table = table.setdefault(str(part), {})
        table[str(found[-1])] = _decoded(text)

    def _place(self, words: list[str], shape: Shape, data: Any) -> Path | str:
        """Where the variable belongs, or why nowhere."""
        path: tuple[str, ...] = ()
        for position, word in enumerate(words):
            here = _table(data) | _table(_at(self._values, path))
            shape = shape.narrowed(here)
            key = _key(word, words[position + 1 :], shape, here)
            if key is None:
                return _unknown((*path, word), shape, here)
            path = (*path, key)
            data = _table(data).get(key)
            shape = shape.at(key) or Shape(Any)
        if shape.keys is not None or shape.named:
            return f"{dotted(path)} is a table; name a setting in it after two underscores"
        return path

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """One setting of the environment."""
        return self._values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """Every setting of the environment."""
        return self._values


def _table(data: Any) -> dict[str, Any]:
    return dict(data) if isinstance(data, Mapping) else {}


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = _table(data).get(key)
    return data


def _key(word: str, rest: list[str], shape: Shape, present: Mapping[str, Any]) -> str | None:
    """The file's spelling of one word of a variable's name; None where it means nothing."""
    for key in (*present, *(shape.keys or ())):
        if fold(key) == fold(word):
            return key
    if shape.open:
        return word.lower()
    inner = shape.at("") if shape.named else None
    if inner is None:
        return None
    if inner.keys is None:  # a rule, or one of its thresholds
        return word.lower().replace("_", "-") if inner.named else word.lower()
    # A setting of a cluster that nobody knows would make a broken cluster.
    return word.lower() if rest == ["KIND"] else None


def _unknown(path: tuple[str, ...], shape: Shape, present: Mapping[str, Any]) -> str:
    near = nearest(path[-1], present if shape.named else shape.keys or ())
    what = "no such table" if shape.named else "no such setting"
    if near is None:
        return what
    return f"{what}; nearest: {PREFIX}{'__'.join(fold(p) for p in (*path[:-1], near)).upper()}"


def _decoded(text: str) -> Any:
    """Lists and tables are written as JSON; everything else is taken as it is."""
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
