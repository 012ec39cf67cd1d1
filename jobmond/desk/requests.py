"""What people ask for, as values: request bodies read once, at the door."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from jobmond.analysis.mask import mask
from jobmond.desk.fields import Field, Flag, Instant, Many, OneOf, Raw, Text, Whole, read_object
from jobmond.desk.refusals import quoted
from jobmond.errors import ConfigError
from jobmond.model.state import Bucket, Kind

_LABEL = Text(
    64, re.compile(r"[A-Za-z0-9][A-Za-z0-9._:=-]*"), "a word of letters, digits and . _ : = -"
)
_USER = Text(128, re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.@+-]*\$?"), "a user name")
_PATH = Text(4096, re.compile(r"/.*", re.DOTALL), "an absolute path")
_CLUSTER = Text(256)
_WORD = Text(512)
_NAME = Text(256)
_PROSE = Text(4096, lines=True)
_KIND = OneOf(tuple(Kind))
_BUCKET = OneOf(tuple(Bucket))
_LABELS = Many(_LABEL, 64)
_REGISTRY = Raw(1024 * 1024)
_INT64 = 2**63 - 1
FOLLOWUP_NUMBER = Whole(1, _INT64, digits=True)

_WISH: Mapping[str, Field] = {
    "name": _NAME,
    "description": _PROSE,
    "bucket": _BUCKET,
    "type": _NAME,
    "run": _NAME,
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants a job to be called and counted as; None leaves it as it is."""

    name: str | None = None
    description: str | None = None
    bucket: Bucket | None = None
    type: str | None = None
    run: str | None = None
    user: str | None = None
    log_path: str | None = None
    nel_command: tuple[str, ...] = ()
    nel_home: str | None = None
    labels_add: frozenset[str] = frozenset()
    labels_remove: frozenset[str] = frozenset()
    session: Mapping[str, Any] | None = None
    last_status: str | None = None

    def powers(self) -> list[str]:
        """What of this the daemon does with its own rights, here or at the far side."""
        given = (
            (self.log_path, "name a log to read"),
            (self.nel_command or self.nel_home, "name a program to call"),
        )
        return [power for value, power in given if value]

    def words(self) -> dict[str, Any]:
        """What was given, as plain JSON values for the audit trail."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: sorted(v) if isinstance(v, frozenset) else v for k, v in given.items() if v}


@dataclass(frozen=True, slots=True)
class AddRequest:
    """Track `ids`; `submitted_at` is a hint about the incarnation meant."""

    ids: tuple[str, ...]
    kind: Kind | None = None
    cluster: str | None = None
    wish: Wish = Wish()
    submitted_at: datetime | None = None

    @classmethod
    def read(cls, body: object) -> "AddRequest":
        form: dict[str, Field] = {
            **_WISH,
            "ids": Many(_WORD, 10_000),
            "kind": _KIND,
            "cluster": _CLUSTER,
            "labels": _LABELS,
            "user": _USER,
            "log": _PATH,
            "nel_command": Many(_WORD, 64),
            "nel_home": _PATH,
            "submitted_at": Instant(),
        }
        given = read_object(body, form, required=("ids",))
        if not given["ids"]:
            raise ConfigError("ids is empty: name at least one job")
        return cls(
            ids=tuple(dict.fromkeys(given["ids"])),
            kind=Kind(given["kind"]) if "kind" in given else None,
            cluster=given.get("cluster"),
            wish=_wish(given),
            submitted_at=given.get("submitted_at"),
        )


def read_change(body: object) -> Wish:
    """The body of a label request.

    Raises:
        ConfigError: as `read_object`; also a label both added and removed, or nothing to change.
    """
    form: dict[str, Field] = {**_WISH, "labels_add": _LABELS, "labels_remove": _LABELS}
    wish = _wish(read_object(body, form))
    if both := sorted(wish.labels_add & wish.labels_remove):
        raise ConfigError(f"label {quoted(both[0])} is both added and removed")
    if wish == Wish():
        raise ConfigError("nothing to change: give a label, bucket, run, name or description")
    return wish


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """Sweep `cluster` (None: all) now; with `wait`, answer when it is committed."""

    cluster: str | None = None
    wait: bool = False

    @classmethod
    def read(cls, body: object) -> "SweepRequest":
        given = read_object(body, {"cluster": _CLUSTER, "wait": Flag()})
        return cls(given.get("cluster"), given.get("wait", False))


@dataclass(frozen=True, slots=True)
class CloseRequest:
    """Close a follow-up with an optional verdict (`kill`, `no-kill`) and note."""

    verdict: str | None = None
    note: str | None = None

    @classmethod
    def read(cls, body: object) -> "CloseRequest":
        form: dict[str, Field] = {"verdict": OneOf(("kill", "no-kill")), "note": _PROSE}
        given = read_object(body, form)
        return cls(given.get("verdict"), given.get("note"))


@dataclass(frozen=True, slots=True)
class ImportRequest:
    """Track what `text` lists, or `watch` (or no longer watch) the file at `path`."""

    text: str | None = None
    path: str | None = None
    watch: bool = False

    @classmethod
    def read(cls, body: object) -> "ImportRequest":
        form: dict[str, Field] = {"text": _REGISTRY, "path": _PATH, "watch": Flag()}
        given = read_object(body, form)
        if ("text" in given) == ("path" in given):
            raise ConfigError("give either text or path")
        if ("path" in given) != ("watch" in given):
            raise ConfigError("path and watch go together")
        return cls(**given)


def read_refs(body: object) -> tuple[str, ...]:
    """The body of a request to track discovered jobs."""
    given = read_object(body, {"refs": Many(_WORD, 10_000)}, required=("refs",))
    return tuple(dict.fromkeys(given["refs"]))


@dataclass(frozen=True, slots=True)
class LocalStart:
    """A process announced by the program that started it.

    `start_ticks` (field 22 of `/proc/PID/stat`) and `boot_id` tell it from a later process with
    the same number.
    """

    pid: int
    start_ticks: int
    boot_id: str
    command: str | None = None
    workdir: str | None = None
    started_at: datetime | None = None
    wish: Wish = Wish()

    @property
    def native_id(self) -> str:
        return f"pid-{self.pid}"

    @property
    def birth(self) -> str:
        return f"{self.boot_id}:{self.start_ticks}"

    @classmethod
    def read(cls, body: object) -> "LocalStart":
        form: dict[str, Field] = {
            **_WISH,
            "pid": Whole(1, 2**31 - 1),
            "birth": Whole(0, _INT64, digits=True),
            "boot_id": Text(36, re.compile(r"[0-9a-fA-F-]{32,36}"), "a boot id"),
            "command": Text(16_384, lines=True),
            "log": _PATH,
            "workdir": _PATH,
            "labels": _LABELS,
            "user": _USER,
            "started_at": Instant(),
        }
        given = read_object(body, form, required=("pid", "birth", "boot_id"))
        return cls(
            pid=given["pid"],
            start_ticks=given["birth"],
            boot_id=given["boot_id"],
            command=given.get("command"),
            workdir=given.get("workdir"),
            started_at=given.get("started_at"),
            wish=_wish(given),
        )


@dataclass(frozen=True, slots=True)
class LocalExit:
    """How an announced process ended: by `exit_code`, or by `signal`."""

    ref: str
    exit_code: int | None
    signal: int | None
    ended_at: datetime

    @classmethod
    def read(cls, body: object) -> "LocalExit":
        form: dict[str, Field] = {
            "ref": _WORD,
            "exit_code": Whole(0, 255),
            "signal": Whole(1, 64),
            "ended_at": Instant(),
        }
        given = read_object(body, form, required=("ref", "ended_at"))
        if ("exit_code" in given) == ("signal" in given):
            raise ConfigError("give either exit_code or signal")
        return cls(given["ref"], given.get("exit_code"), given.get("signal"), given["ended_at"])


@dataclass(frozen=True, slots=True)
class EventsRequest:
    """Events after `after` (a key) and `since`; waits up to `wait_s` for the first."""

    after: str | None = None
    since: datetime | None = None
    limit: int = 1000
    wait_s: int = 0

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "EventsRequest":
        form: dict[str, Field] = {
            "after": _WORD,
            "since": Instant(),
            "limit": Whole(1, 10_000, digits=True),
            "wait_s": Whole(0, 300, digits=True),
        }
        return cls(**read_object(query, form))


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """What ended since `since`, of all jobs or of one."""

    since: datetime | None = None
    job: str | None = None
    limit: int = 1000

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "HistoryRequest":
        form: dict[str, Field] = {
            "since": Instant(),
            "job": _WORD,
            "limit": Whole(1, 10_000, digits=True),
        }
        return cls(**read_object(query, form))


@dataclass(frozen=True, slots=True)
class LogRequest:
    """The last `n` lines of a job's log, or what came after byte `after`."""

    job: str
    n: int = 100
    after: int | None = None

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "LogRequest":
        form: dict[str, Field] = {
            "job": _WORD,
            "n": Whole(0, 10_000, digits=True),
            "after": Whole(0, _INT64, digits=True),
        }
        return cls(**read_object(query, form, required=("job",)))


def read_job_word(query: Mapping[str, str]) -> str:
    """The JOB of a request about one job."""
    word: str = read_object(query, {"job": _WORD}, required=("job",))["job"]
    return word


def read_all_flag(query: Mapping[str, str]) -> bool:
    """Whether closed follow-ups are wanted too."""
    return bool(read_object(query, {"all": Flag(digits=True)}).get("all", False))


def _discreet(text: str | None) -> str | None:
    return None if text is None else mask(text)


def _wish(given: Mapping[str, Any]) -> Wish:
    bucket = given.get("bucket")
    return Wish(
        name=_discreet(given.get("name")),
        description=_discreet(given.get("description")),
        bucket=None if bucket is None else Bucket(bucket),
        type=given.get("type"),
        run=_discreet(given.get("run")),
        user=given.get("user"),
        log_path=given.get("log"),
        nel_command=tuple(given.get("nel_command", ())),
        nel_home=given.get("nel_home"),
        labels_add=frozenset(given.get("labels", ()) or given.get("labels_add", ())),
        labels_remove=frozenset(given.get("labels_remove", ())),
    )
