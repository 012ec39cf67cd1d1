"""News of what people owe: opened, closed by itself, and reminders."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from jobmond.analysis.instants import instant, span
from jobmond.analysis.mask import mask
from jobmond.analysis.visible import visible
from jobmond.model.job import Job
from jobmond.model.outcome import Followup, News
from jobmond.model.state import Bucket, Severity

_LISTED = 50  # in one reminder


def whose(job: Job) -> dict[str, Any]:
    """What is kept of a job with what is owed for it: the job may be forgotten before that."""
    return {
        "name": visible(job.name),
        "bucket": job.bucket.value,
        "run": visible(job.run),
        "birth": job.birth,
    }


def followup_news(followup: Followup, *, at: datetime) -> News:
    """Something a person owes was opened, or closed by itself."""
    job, cluster = followup.evidence.get("job") or {}, followup.ref.partition("/")[0]
    native = followup.ref.partition("/")[2]
    opened = int(followup.opened_at.timestamp())
    closed = followup.state == "closed"
    said = f"{followup.kind} closed: {followup.note or followup.title}"
    title = f"{followup.ref} ({visible(str(job.get('name', native)))}): "
    payload = _payload(
        at,
        "followup",
        title + (said if closed else f"owed: {followup.title}"),
        followup.title if closed else followup.note or "",
        {
            "ref": followup.ref,
            "name": job.get("name", native),
            "bucket": job.get("bucket", Bucket.OTHER.value),
            "run": job.get("run", native),
        },
        followup={
            "id": followup.id or followup.word,
            "kind": followup.kind,
            "state": followup.state,
        },
    )
    birth = job.get("birth") or "unseen"
    key = f"{followup.ref}@{birth}:followup:{followup.kind}:{opened}:{followup.state}"
    return News(key, at, "followup", Severity.INFO, cluster, followup.ref, payload)


def digest(owed: Sequence[Followup], *, at: datetime) -> News:
    """A reminder of everything that is owed, the oldest first."""
    lines = [
        f"{one.id} {one.kind} {one.ref} "
        f"({span(max(0.0, (at - one.opened_at).total_seconds()))}): {visible(one.title)}"
        for one in owed[:_LISTED]
    ]
    if len(owed) > _LISTED:
        lines.append(f"and {len(owed) - _LISTED} more")
    count = f"{len(owed)} follow-up{'' if len(owed) == 1 else 's'}"
    payload = _payload(
        at,
        "digest",
        f"{count} to be done: jobmonctl followups",
        "\n".join(lines),
        None,
        owed=[{"id": one.id, "kind": one.kind, "ref": one.ref} for one in owed[:_LISTED]],
    )
    key = f"digest:{int(at.timestamp())}"
    return News(key, at, "digest", Severity.INFO, "", None, payload)


def _payload(
    at: datetime, type_: str, title: str, body: str, job: dict[str, Any] | None, **more: Any
) -> dict[str, Any]:
    return {
        "schema": 1,
        "at": instant(at),
        "type": type_,
        "severity": Severity.INFO.value,
        "job": job,
        "before": None,
        "after": None,
        "native": None,
        "correction": False,
        "title": mask(title),
        "body": mask(body),
        "diagnosis": None,
        "agent_log": None,
        **more,
    }
