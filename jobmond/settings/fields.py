"""The types of single settings: what people write becomes one safe value or one reason."""

import re
import re._parser as pattern_parser  # type: ignore[import-not-found] # a private part of re, without stubs
import shlex
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from jobmond.settings.paths import expanded, state_directory


class Table(BaseModel):
    """A table of the file. Unknown keys are errors; values never appear in error texts."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        validate_default=False,
    )


_CREDENTIALS = "CREDENTIALS_DIRECTORY"  # where systemd puts what LoadCredential= names


@dataclass(frozen=True, slots=True)
class Place:
    """What a path in the file is relative to, and where defaults are."""

    folder: Path
    home: Path
    state: Path
    credentials: Path | None = None

    @classmethod
    def of(cls, env: Mapping[str, str], folder: Path | None = None) -> "Place":
        """The place of a file in `folder`, or of defaults only."""
        state = state_directory(env)
        given = env.get(_CREDENTIALS, "")
        return cls(
            folder=folder or state,
            home=Path(env.get("HOME") or Path.home()),
            state=state,
            credentials=Path(given) if given else None,
        )


# A path means nothing without the folder of the file that names it, and validators get no
# arguments; set for the time of one validation.
place: ContextVar[Place | None] = ContextVar("place", default=None)


def here() -> Place:
    """The place of the validation that is running."""
    current = place.get()
    return current if current is not None else Place.of({})


_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhdw])")
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LONGEST_S = 100 * 365 * 86400


def _duration(value: Any) -> Any:
    if isinstance(value, timedelta) or value is None:
        return value
    seconds: float | None = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str):
        seconds = _seconds(value.strip())
    if seconds is None or not 0 <= seconds <= _LONGEST_S:
        raise ValueError("expected a duration such as 30s, 15m, 24h, 7d or a number of seconds")
    return timedelta(seconds=seconds)


def _seconds(text: str) -> float | None:
    if re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,3})?", text):
        return float(text)
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return float(sum(float(number) * _UNIT_S[unit] for number, unit in parts))


Duration = Annotated[timedelta, BeforeValidator(_duration)]


def _positive(value: timedelta) -> timedelta:
    if value < timedelta(seconds=1):
        raise ValueError("must be at least 1s")
    return value


Interval = Annotated[timedelta, BeforeValidator(_duration), AfterValidator(_positive)]
"""A duration of a second or more: nothing may be asked without a pause."""

Keep = Annotated[
    timedelta | None, BeforeValidator(lambda v: None if v == "forever" else _duration(v))
]
"""How long something is kept; `forever` is None."""


def _path(value: Any) -> Any:
    if isinstance(value, str):
        if not value or "\0" in value:
            raise ValueError("expected a path")
        if value.startswith(f"${_CREDENTIALS}/"):
            return _credential(value.partition("/")[2])
        return expanded(value, folder=here().folder, env_home=here().home)
    return value


def _credential(name: str) -> Path:
    folder = here().credentials
    if folder is None:
        raise ValueError(
            f"${_CREDENTIALS} is not set: only a service of systemd with LoadCredential has it"
        )
    return folder / name


LocalPath = Annotated[Path, BeforeValidator(_path)]
"""A path on this host, made absolute."""


def _glob(value: str) -> str:
    return str(_path(value))


def _strings(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _matching(pattern: str, what: str) -> Callable[[str], str]:
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(f"not {what}: {text[:80]!r}")
        return text

    return check


Name = Annotated[
    str,
    AfterValidator(
        _matching(
            r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
            "a name (letters, digits, dot, dash and underscore, no slash, at most 64)",
        )
    ),
]
# A leading dash would be an option of the program that gets the word.
Host = Annotated[str, AfterValidator(_matching(r"[A-Za-z0-9_\[:][\w.:%\]-]{0,254}", "a host name"))]
User = Annotated[str, AfterValidator(_matching(r"[A-Za-z0-9_][\w.@-]{0,63}\$?", "a user name"))]
Jump = Annotated[
    str, AfterValidator(_matching(r"[A-Za-z0-9_\[:][\w.:%@,\[\]-]{0,254}", "a jump host"))
]
Label = Annotated[str, AfterValidator(_matching(r"[A-Za-z0-9][\w.:-]{0,63}", "a label"))]
Port = Annotated[int, Field(ge=1, le=65535)]
Count = Annotated[int, Field(ge=1)]
Bytes = Annotated[int, Field(ge=1024)]

_LONGEST_PATTERN = 500


def _regex(text: str) -> str:
    if len(text) > _LONGEST_PATTERN:
        raise ValueError(f"regular expression longer than {_LONGEST_PATTERN} characters")
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
    if _nested_repeat(pattern_parser.parse(text), inside=False):
        raise ValueError(
            "a repetition inside a repetition, such as (a+)+, can take for ever;"
            " write it flat or possessive, such as (a++)+"
        )
    return text


def _nested_repeat(parsed: Any, *, inside: bool) -> bool:
    for operation, argument in parsed:
        repeats = operation in (pattern_parser.MAX_REPEAT, pattern_parser.MIN_REPEAT)
        endless = repeats and argument[1] is pattern_parser.MAXREPEAT
        if endless and inside:
            return True
        # What an atomic group or possessive repeat has matched is never tried another way.
        sealed = operation in (pattern_parser.ATOMIC_GROUP, pattern_parser.POSSESSIVE_REPEAT)
        below = (inside or endless) and not sealed
        if any(_nested_repeat(part, inside=below) for part in _subpatterns(argument)):
            return True
    return False


def _subpatterns(argument: Any) -> list[Any]:
    if isinstance(argument, pattern_parser.SubPattern):
        return [argument]
    if isinstance(argument, tuple | list):
        return [sub for part in argument for sub in _subpatterns(part)]
    return []


Regex = Annotated[str, AfterValidator(_regex)]
"""A regular expression that compiles and has no nested endless repetition."""

Strings = Annotated[tuple[str, ...], BeforeValidator(_strings)]
"""One string or a list of them."""
LocalGlobs = Annotated[
    tuple[str, ...], BeforeValidator(_strings), AfterValidator(lambda v: tuple(map(_glob, v)))
]
"""Paths on this host that may hold `*`, made absolute."""
Hosts = Annotated[tuple[Host, ...], BeforeValidator(_strings)]
Users = Annotated[tuple[User, ...], BeforeValidator(_strings)]
Labels = Annotated[tuple[Label, ...], BeforeValidator(_strings)]
Regexes = Annotated[tuple[Regex, ...], BeforeValidator(_strings)]


def _words(value: Any) -> Any:
    return tuple(shlex.split(value)) if isinstance(value, str) else value


Command = Annotated[tuple[str, ...], BeforeValidator(_words)]
"""A command line: a list of words, or one string that is split as a shell would."""
