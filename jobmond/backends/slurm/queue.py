"""squeue's answer as rows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jobmond.analysis.visible import readable, visible
from jobmond.backends.slurm.fields import (
    JobId,
    count,
    duration_s,
    epoch,
    last_line,
    listed_id,
    words,
)
from jobmond.backends.slurm.rows import QueueRow
from jobmond.backends.slurm.script import SQUEUE_FIELDS, Nonce, Section


@dataclass(frozen=True, slots=True)
class Queue:
    """What slurmctld answered.

    `whole` says that a job which is not among `rows` is not in the queue of the asked users.
    `unreadable` maps a master id to the text of a row that could not be read.
    """

    rows: tuple[QueueRow, ...]
    whole: bool
    unreadable: dict[str, str]
    complaints: tuple[str, ...] = ()


def parse(section: Section, nonce: Nonce) -> Queue:
    """The rows of an answer that arrived whole and with rc 0."""
    rows: list[QueueRow] = []
    unreadable: dict[str, str] = {}
    complaints: list[str] = []
    for record in _records(section.out, nonce.field.encode()):
        row = None if record is None else _row(record)
        if row is not None:
            rows.append(row)
            continue
        text = visible(readable(b"|".join(record)))[:200] if record else "a row cut short"
        job = listed_id(readable(record[0])) if record else None
        if job is not None:
            unreadable[job.master] = f"squeue: a row that cannot be read: {text}"
        complaints.append(f"squeue: a row that cannot be read: {text}")
    anonymous = len(complaints) > len(unreadable)
    # `squeue -u nosuch` is rc 0 and empty: the only sign is a line on standard error.
    trouble = last_line(section.err) if b"error:" in section.err else ""
    if trouble:
        complaints.append(trouble if trouble.startswith("squeue") else f"squeue: {trouble}")
    return Queue(tuple(rows), not (anonymous or trouble), unreadable, tuple(complaints))


def _records(out: bytes, word: bytes) -> Iterator[list[bytes] | None]:
    """The fields of each record; None for one whose end is missing."""
    first, *records = out.split(word + b"<")
    if first.strip():
        yield None
    for record in records:
        body, end, _ = record.partition(word + b">")
        yield body.split(word + b";") if end else None


def _row(fields: list[bytes]) -> QueueRow | None:
    if len(fields) != len(SQUEUE_FIELDS):
        return None
    at = dict(zip(SQUEUE_FIELDS, fields, strict=True))
    job = listed_id(readable(at["i"]).strip())
    submit = epoch(at["V"])
    if job is None or submit is None or count(at["A"]) is None:
        return None
    row = QueueRow(
        id=_with_task(job, at),
        raw_id=readable(at["A"]).strip(),
        native=visible(readable(at["T"]).strip()),
        submit=submit,
        name=at["j"],
    )
    return replace(
        row,
        user=words(at["u"]),
        partition=words(at["P"]),
        account=words(at["a"]),
        comment=words(at["k"]),
        workdir=at["Z"],
        command=at["o"],
        reason=words(at["r"]),
        dependency=words(at["E"]),
        start=epoch(at["S"]),
        end=epoch(at["e"]),
        elapsed_s=duration_s(at["M"]),
        limit_s=duration_s(at["l"]),
        nodes=words(at["N"]),
    )


def _with_task(job: JobId, at: dict[str, bytes]) -> JobId:
    """`%K` tells the tasks that `%i` was too short for."""
    if job.waiting is None or job.waiting.whole:
        return job
    again = listed_id(f"{job.master}_[{readable(at['K']).strip()}]")
    return again if again and again.waiting and again.waiting.whole else job
