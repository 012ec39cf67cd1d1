"""What of a status document somebody asked for."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from jobmond.errors import ConfigError, Refused
from jobmond.model.state import Bucket, Severity, State
from jobmond.reports.document import sft_grid, summary
from jobmond.reports.note import continued
from jobmond.reports.schema import JOB
from jobmond.reports.times import parse_instant

_BAD_ENDS = frozenset(
    {State.FAILED, State.OUT_OF_MEMORY, State.NODE_FAIL, State.LOST, State.TIMEOUT}
)
_DEEP = frozenset(
    name
    for name, part in JOB["properties"].items()
    if part.get("type") == "object" or "anyOf" in part
)


def narrowed(document: Mapping[str, Any], jobs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The document with only `jobs`, and the summary and the grid of those."""
    grid = sft_grid(jobs)
    return {**document, "jobs": list(jobs), "summary": summary(jobs), "sft_grid": grid}


def chosen(
    jobs: Sequence[Mapping[str, Any]],
    *,
    words: Sequence[str] = (),
    bucket: str | None = None,
) -> list[Mapping[str, Any]]:
    """The job objects that all filters let through, in the document's order.

    Raises:
        Refused: a word that means no job, or several.
    """
    wanted = {id(the_job(jobs, word)) for word in words}
    return [
        job
        for job in jobs
        if (not words or id(job) in wanted) and (bucket is None or job["bucket"] == bucket)
    ]


def the_job(jobs: Sequence[Mapping[str, Any]], word: str) -> Mapping[str, Any]:
    """The job that a ref, a bare native id or a name means.

    Of several a tracked one is meant, or the newest life where all are of one run.

    Raises:
        Refused: no job, or several.
    """
    for found in (
        [job for job in jobs if job["ref"] == word],
        [job for job in jobs if job["native_id"] == word and "@" not in job["ref"]],
        [job for job in jobs if word in (job["name"], job["run"])],
        [job for job in jobs if job["native_id"] == f"pid-{word}" and "@" not in job["ref"]],
    ):
        living = [job for job in found if job["tracked"]]
        if len(found) == 1 or len(living) == 1:
            return (living or found)[0]
        if found and len({(job["cluster"], job["run"]) for job in found}) == 1:
            return max(found, key=lambda job: int(job["life"]))
        if found:
            refs = ", ".join(str(job["ref"]) for job in found[:5])
            more = f" and {len(found) - 5} more" if len(found) > 5 else ""
            raise Refused(f"{word!r} may be {refs}{more}: give one of these")
    known = {str(job[key]) for job in jobs for key in ("ref", "native_id", "name")}
    raise Refused(
        f"no job {word!r} in the report{nearest(word, known)}; `jobmonctl history` has older ones"
    )


def changed(
    jobs: Sequence[Mapping[str, Any]], since: datetime, refs: Collection[str]
) -> list[Mapping[str, Any]]:
    """Jobs with an event since then (`refs`), or that were submitted, started or ended since."""
    return [job for job in jobs if job["ref"] in refs or _moved(job, since)]


def _moved(job: Mapping[str, Any], since: datetime) -> bool:
    instants = (parse_instant(job.get(key)) for key in ("submitted_at", "started_at", "ended_at"))
    return any(at is not None and at >= since for at in instants)


def alarm(document: Mapping[str, Any]) -> bool:
    """Whether something wants a person now: a bad end, a standing alarm, a login that is needed."""
    return any(map(_alarming, document["jobs"])) or any(
        cluster["status"] == "needs-login" for cluster in document["clusters"]
    )


def _alarming(job: Mapping[str, Any]) -> bool:
    if any(signal["severity"] == Severity.ALARM for signal in job["signals"]):
        return True
    ref = f"{job['cluster']}/{job['native_id']}"
    return job["state"] in _BAD_ENDS and not continued(job["state"], job.get("successor"), ref)


def field_names(text: str) -> list[str]:
    """`ref,state,metrics.reward` as names of job fields.

    Raises:
        ConfigError: a job has no such field; the nearest is named.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = sorted(JOB["properties"])
    for name in names:
        top, dot, _ = name.partition(".")
        if top not in known or (dot and top not in _DEEP):
            raise ConfigError(f"a job has no field {name!r}{nearest(name, known)}")
    if not names:
        raise ConfigError("--fields names no field")
    return names


def fields(job: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Only these fields; an absent one stays absent."""
    found = ((name, _look(job, name)) for name in names)
    return {name: value for name, value in found if value is not _ABSENT}


_ABSENT = object()


def _look(job: Mapping[str, Any], name: str) -> Any:
    if name in job:
        return job[name]
    top, _, rest = name.partition(".")
    inner = job.get(top)
    if not rest or not isinstance(inner, Mapping):
        return _ABSENT
    return inner[rest] if rest in inner else _look(inner, rest)


def the_bucket(word: str) -> Bucket:
    """The bucket a word names; `catch-all` is `other`.

    Raises:
        ConfigError: no bucket has that name; the nearest is named.
    """
    lowered = word.strip().lower()
    if lowered in ("catch-all", "catchall"):
        return Bucket.OTHER
    if lowered not in set(Bucket):
        raise ConfigError(
            f"no bucket {word!r}{nearest(lowered, list(Bucket))}; buckets: {', '.join(Bucket)}"
        )
    return Bucket(lowered)


def nearest(word: str, known: Iterable[str]) -> str:
    """`: did you mean 'x'?`, or nothing."""
    close = difflib.get_close_matches(word[:120], [str(k)[:120] for k in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
