"""`scontrol show job -o`: KEY=VALUE pairs without any quoting."""

import re
from collections.abc import Mapping

from jobmond.analysis.visible import readable, visible
from jobmond.backends.slurm.fields import (
    JobId,
    count,
    duration_s,
    epoch,
    exit_pair,
    last_line,
    listed_id,
    usable_path,
    words,
)
from jobmond.backends.slurm.rows import Detail, NoDetail, NotKnown, QueueRow
from jobmond.backends.slurm.script import Section
from jobmond.backends.slurm.states import is_end

# A key begins with a capital letter. `lr=1e-4` in a job's name is no key; `LR=1e-4` would be
# taken for one, which is why a name that is known beforehand is cut out first.
_GPUS = re.compile(rb"(?:^|,)gres/gpu=(\d{1,7})(?:,|$)")
_KEY = re.compile(rb"(?:^| )([A-Z][A-Za-z0-9_/:]*)=")
_RECORD = re.compile(rb"(?:^|\n)(?=JobId=\d+ )")
_OWNER = re.compile(rb" UserId=[^\s()]+\(\d+\) GroupId=[^\s()]+\(\d+\) ")
_USER = re.compile(rb"([^\s()]+)\(\d+\)")
_UNKNOWN_ID = re.compile(rb"Invalid job id specified|^Job \S+ not found", re.MULTILINE)


def read(section: Section, *, name: bytes | None) -> Detail:
    """What scontrol said about one id. `name` is the job's name where it is known already."""
    if section.rc == 0:
        rows = [_row(_pairs(raw, name)) for raw in _RECORD.split(section.out) if raw.strip()]
        known = tuple(row for row in rows if row is not None)
        return known or NoDetail("scontrol's answer cannot be read")
    if _UNKNOWN_ID.search(section.err) or _UNKNOWN_ID.search(section.out):
        return NotKnown()
    if section.rc in (124, 137):
        return NoDetail("scontrol did not answer in time")
    return NoDetail(last_line(section.err) or f"scontrol ended with {section.rc}")


def _pairs(raw: bytes, name: bytes | None) -> Mapping[str, bytes]:
    """Every key with its value.

    What stands after `Command=` is the job's own text: it cannot change a key from before, and of
    its own keys the last counts (a comment may well hold ` StdOut=`; the real one comes after it).
    """
    before, called, rest = raw.partition(b" JobName=")
    title = b""
    if called:
        title, rest = _title(rest, name)
    slurms, command, jobs = rest.rstrip(b"\n ").partition(b" Command=")
    pairs = dict(_split(command + jobs))
    pairs |= dict(reversed(_split(slurms)))
    pairs |= dict(reversed(_split(before)))
    pairs["JobName"] = title
    return pairs


def _title(rest: bytes, name: bytes | None) -> tuple[bytes, bytes]:
    """The name, and what follows it. HetJobIdSet may stand between name and owner."""
    if name is not None and rest.startswith(name + b" "):
        return name, rest[len(name) :]
    owner = _OWNER.search(rest)
    if owner is None:
        return b"", rest
    title, mark, _ = rest[: owner.start()].partition(b" HetJobIdSet=")
    return (title, rest[len(title) :]) if mark else (title, rest[owner.start() :])


def _split(text: bytes) -> list[tuple[str, bytes]]:
    keys = list(_KEY.finditer(text))
    ends = [*(key.start() for key in keys[1:]), len(text)][: len(keys)]
    return [
        (key[1].decode(), text[key.end() : end].rstrip(b" "))
        for key, end in zip(keys, ends, strict=True)
    ]


def _row(pairs: Mapping[str, bytes]) -> QueueRow | None:
    raw_id = readable(pairs.get("JobId", b""))
    submit = epoch(pairs.get("SubmitTime", b""))
    job = _id(raw_id, pairs)
    native = visible(readable(pairs.get("JobState", b"")))
    if job is None or submit is None or not native:
        return None
    user = _USER.match(pairs.get("UserId", b""))
    out, err = pairs.get("StdOut"), pairs.get("StdErr")
    return QueueRow(
        id=job,
        raw_id=raw_id,
        native=native,
        submit=submit,
        name=pairs.get("JobName", b""),
        source="scontrol",
        user=words(user[1]) if user else None,
        partition=words(pairs.get("Partition", b"")),
        account=words(pairs.get("Account", b"")),
        comment=words(pairs.get("Comment", b"")),
        workdir=pairs.get("WorkDir"),
        command=pairs.get("Command"),
        reason=words(pairs.get("Reason", b"").replace(b"_", b" ")),
        dependency=words(pairs.get("Dependency", b"")),
        start=epoch(pairs.get("StartTime", b"")),
        end=epoch(pairs.get("EndTime", b"")),
        elapsed_s=duration_s(pairs.get("RunTime", b"")),
        limit_s=duration_s(pairs.get("TimeLimit", b"")),
        nodes=words(pairs.get("NodeList", b"")),
        # Before the end it is 0:0, or that of the run before.
        exit=exit_pair(pairs.get("ExitCode", b"")) if is_end(native) else None,
        restarts=count(pairs.get("Restarts", b"")),
        log_path=usable_path(out),
        err_path=usable_path(err) if err != out else None,
        node_count=count(pairs.get("NumNodes", b"").partition(b"-")[0]),
        gpus=_gpus(pairs),
    )


def _gpus(pairs: Mapping[str, bytes]) -> int | None:
    """Those of all nodes together: allocated, else asked for; slurmctld before 23.02 has one."""
    for key in ("AllocTRES", "TRES", "ReqTRES"):
        found = _GPUS.search(pairs.get(key, b""))
        if found is not None:
            return int(found[1])
    return None


def _id(raw_id: str, pairs: Mapping[str, bytes]) -> JobId | None:
    array, task = pairs.get("ArrayJobId"), pairs.get("ArrayTaskId", b"")
    leader, offset = pairs.get("HetJobId"), pairs.get("HetJobOffset", b"")
    if array is not None:
        inside = readable(task) if task.isdigit() else f"[{readable(task)}]"
        return listed_id(f"{readable(array)}_{inside}")
    if leader is not None and leader != b"0":
        return listed_id(f"{readable(leader)}+{readable(offset)}")
    return listed_id(raw_id)
