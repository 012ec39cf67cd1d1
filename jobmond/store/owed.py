"""What a sweep concludes of follow-ups, and which settings of runs have proved themselves."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, and_, select, update

from jobmond.model.commit import SweepCommit
from jobmond.model.outcome import Delivery, Followup, News
from jobmond.model.setting import Setting
from jobmond.store import codec
from jobmond.store.columns import json_text
from jobmond.store.engine import insert_new, write
from jobmond.store.records import followup_of
from jobmond.store.schema import followups, settings_tried

PROBE = "deep-probe"
_MOST = 2000  # settings and probes that are remembered in a sweep, the newest


def completed_on(connection: Connection, cluster: str) -> tuple[Setting, ...]:
    """Settings of which a run completed on a cluster."""
    query = (
        select(settings_tried.c.setting)
        .where(settings_tried.c.cluster == cluster)
        .order_by(settings_tried.c.completed_at.desc())
        .limit(_MOST)
    )
    return tuple(codec.load(Setting, held) for held in connection.scalars(query))


def probes_on(connection: Connection, cluster: str) -> tuple[Followup, ...]:
    """The deep probes that were ever owed for a cluster's jobs, oldest first."""
    here = followups.c.ref.startswith(f"{cluster}/", autoescape=True)
    query = (
        select(followups)
        .where(followups.c.kind == PROBE, here)
        .order_by(followups.c.id.desc())
        .limit(_MOST)
    )
    return tuple(map(followup_of, connection.execute(query).mappings()))[::-1]


def settle(
    connection: Connection, swept: SweepCommit
) -> tuple[tuple[News, ...], tuple[Delivery, ...]]:
    """Write what is owed from now on and what no longer is; the news of it, with their numbers."""
    _open(connection, swept)
    _close(connection, swept)
    for one in swept.noted:
        note(connection, one.id, _of_sweeps(one.evidence))
    rows = [
        {
            "cluster": swept.cluster,
            "digest": _digest(setting),
            "setting": codec.dump(setting),
            "completed_at": swept.at,
        }
        for setting in swept.completed
    ]
    write(connection, insert_new(connection, settings_tried), rows)
    numbers = _numbers(connection, swept.opened)
    news = tuple(
        replace(one, payload=_numbered(one.payload, numbers)) if one.type == "followup" else one
        for one in swept.news
    )
    deliveries = tuple(
        replace(one, body=_numbered(one.body, numbers)) if one.body.get("followup") else one
        for one in swept.deliveries
    )
    return news, deliveries


def note(connection: Connection, followup_id: int, evidence: Mapping[str, Any]) -> None:
    """What is known of one that is open, beside what others noted meanwhile."""
    known = and_(followups.c.id == followup_id, followups.c.state == "open")
    held = connection.execute(select(followups.c.evidence).where(known)).first()
    if held is not None:
        whole = {**(held[0] or {}), **evidence}
        connection.execute(update(followups).where(known).values(evidence=whole))


def _of_sweeps(evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Without the outcome of a command, which no sweep writes."""
    return {name: value for name, value in evidence.items() if name != "command"}


def _digest(setting: Setting) -> str:
    return hashlib.sha256(json_text(codec.dump(setting)).encode()).hexdigest()[:32]


def _open(connection: Connection, swept: SweepCommit) -> None:
    opened = [
        {
            "kind": one.kind,
            "ref": one.ref,
            "title": one.title,
            "opened_at": one.opened_at,
            "state": "open",
            "evidence": dict(one.evidence) or None,
        }
        for one in swept.opened
    ]
    write(connection, insert_new(connection, followups), opened)


def _close(connection: Connection, swept: SweepCommit) -> None:
    for one in swept.closed:
        if one.id:
            note(connection, one.id, _of_sweeps(one.evidence))
        named = followups.c.id == one.id
        if not one.id:
            named = and_(followups.c.kind == one.kind, followups.c.ref == one.ref)
        connection.execute(
            update(followups)
            .where(named, followups.c.state == "open")
            .values(
                state="closed",
                closed_at=one.closed_at or swept.at,
                closed_by=one.closed_by,
                verdict=one.verdict,
                note=one.note,
            )
        )


def _numbers(connection: Connection, opened: Sequence[Followup]) -> dict[str, int]:
    """Of what was opened now, by kind and ref."""
    found = {}
    for one in opened:
        query = (
            select(followups.c.id)
            .where(followups.c.kind == one.kind, followups.c.ref == one.ref)
            .order_by(followups.c.id.desc())
            .limit(1)
        )
        number = connection.scalar(query)
        if number is not None:
            found[one.word] = number
    return found


def _numbered(payload: Mapping[str, Any], numbers: Mapping[str, int]) -> Mapping[str, Any]:
    told = payload["followup"]
    number = numbers.get(str(told["id"]))
    return payload if number is None else {**payload, "followup": {**told, "id": number}}
