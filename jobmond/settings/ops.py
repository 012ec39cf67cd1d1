"""A cluster's ops file: Markdown whose front matter says how things are there today.

Everybody who works with the cluster edits it, so it can only say what harms nobody: never a key,
a command or a sink.
"""

from typing import Annotated, Any

import yaml
from pydantic import BeforeValidator, Field, ValidationError

from jobmond.errors import ConfigError
from jobmond.settings.clusters import AnyCluster
from jobmond.settings.complaints import complaint
from jobmond.settings.fields import Hosts, Regexes, Strings, Table, User
from jobmond.settings.shape import hint

LARGEST_BYTES = 2**20
_LONGEST_CHARS = 64 * 1024  # of the front matter
_FENCE, _ENDS = "---", ("---", "...")


def _line(value: Any) -> Any:
    return " ".join(value.split()) if isinstance(value, str) else value


class Ops(Table):
    """The front matter; what is not given leaves the table of the configuration as it is."""

    active: bool | None = None
    host: Annotated[Hosts, Field(min_length=1)] | None = None
    user: User | None = None
    benign: Regexes | None = None
    log_dirs: Strings | None = None
    ckpt_dirs: Strings | None = None
    no_kill: bool | None = None
    notes: Annotated[str, BeforeValidator(_line), Field(max_length=1000)] | None = None


def read_ops(text: str) -> Ops:
    """What an ops file says; nothing where it has no front matter.

    Raises:
        ConfigError: one line that says what is wrong.
    """
    front = _front_matter(text)
    if front is None:
        return Ops()
    try:
        data = yaml.safe_load(front)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 2}: " if mark else ""  # the fence is line 1
        raise ConfigError(f"{where}no YAML: {_one_line(error.problem or error.context)}") from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        raise ConfigError(f"no YAML: {_one_line(str(error))}") from error
    if data is None:
        return Ops()
    if not isinstance(data, dict):
        raise ConfigError("the front matter is no table: write `key: value` lines")
    return _checked(data)


def with_ops(table: AnyCluster, ops: Ops) -> AnyCluster:
    """The cluster's table where the ops file wins over it.

    Raises:
        ConfigError: the ops file sets what such a cluster does not have.
    """
    given = {key: value for key in Ops.model_fields if (value := getattr(ops, key)) is not None}
    for key in given:
        if key not in type(table).model_fields:
            raise ConfigError(f"{key}: a cluster of kind {table.kind} has none")
    return table.model_copy(update=given) if given else table


def _checked(data: dict[Any, Any]) -> Ops:
    for key in data:
        if key not in Ops.model_fields:
            shown = _one_line(str(key))
            raise ConfigError(f"unknown key {shown}; {hint(shown, tuple(Ops.model_fields))}")
    try:
        return Ops.model_validate(data)
    except (ValidationError, RecursionError) as error:
        if isinstance(error, RecursionError):
            raise ConfigError("nested too deeply") from error
        raise ConfigError(complaint(error, Ops, data)) from error


def _front_matter(text: str) -> str | None:
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != _FENCE:
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.rstrip() in _ENDS:
            front = "\n".join(lines[1:number])
            if len(front) > _LONGEST_CHARS:
                raise ConfigError(f"the front matter is longer than {_LONGEST_CHARS} characters")
            return front
    raise ConfigError("the front matter is not closed: its last line is ---")


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())[:200]
