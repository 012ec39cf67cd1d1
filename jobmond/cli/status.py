"""`jobmonctl status`: the report from what the last sweep stored."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from jobmond.cli.places import stored_report
from jobmond.cli.session import Session, say, show, show_json, surface
from jobmond.errors import DaemonUnreachable, JobmondError
from jobmond.model.state import Bucket
from jobmond.reports.box import Column
from jobmond.reports.choose import (
    alarm,
    changed,
    chosen,
    field_names,
    fields,
    narrowed,
    the_bucket,
)
from jobmond.reports.status import status_text
from jobmond.reports.times import parse_instant
from jobmond.reports.view import View

_WATCH_S = 5.0
_PAGE = 1000
_CLEAR = "\x1b[H\x1b[2J"


@dataclass(frozen=True, slots=True)
class Wish:
    """What of the report is wanted. `since` is an instant of the interface."""

    words: tuple[str, ...] = ()
    bucket: Bucket | None = None
    names: tuple[str, ...] = ()
    since: str | None = None
    exit_code: bool = False


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option("--bucket", help="Only rl, sft, datagen, eval or other.")
@click.option("--fields", "field_text", metavar="F,F", help="Only these fields: ref,state,…")
@click.option("--changed-since", metavar="T", help="Only what changed: 2h, 12:30, 2026-11-29 …")
@click.option("--exit-code", is_flag=True, help="Exit with 4 if something is in alarm.")
@click.option("--watch", is_flag=True, help="Redraw every few seconds until interrupted.")
@click.option("--columns", type=click.Choice(["full", "brief"]), default="full")
@click.option("--ascii", "ascii_only", is_flag=True, help="No box-drawing characters.")
@surface
def status(
    session: Session,
    *,
    jobs: tuple[str, ...],
    bucket: str | None,
    field_text: str | None,
    changed_since: str | None,
    exit_code: bool,
    watch: bool,
    columns: str,
    ascii_only: bool,
) -> int:
    """Show active and recently ended jobs. Without a daemon: its last report, and exit code 3."""
    wish = Wish(
        jobs,
        the_bucket(bucket) if bucket is not None else None,
        tuple(field_names(field_text)) if field_text is not None else (),
        session.when(changed_since),
        exit_code,
    )
    if not watch:
        return _once(session, wish, session.view(ascii_only=ascii_only, brief=columns == "brief"))
    if session.as_json:
        raise click.UsageError("--watch draws for people; follow `jobmonctl events` for JSON")
    while True:
        view = session.view(ascii_only=ascii_only, brief=columns == "brief")
        click.echo(_CLEAR, nl=False)
        _once(session, wish, view)
        session.pause(_WATCH_S)


def _once(session: Session, wish: Wish, view: View) -> int:
    document, reached = _document(session)
    document = _narrowed(session, document, wish, reached=reached)
    if wish.names:
        _show_fields(session, document, wish.names, view)
    elif session.as_json:
        show_json(document)
    else:
        show(status_text(document, view))
    if not reached:
        return DaemonUnreachable.exit_code
    return 4 if wish.exit_code and alarm(document) else 0


def _document(session: Session) -> tuple[dict[str, Any], bool]:
    reached = True
    try:
        document = session.daemon().get("/v1/status")
    except DaemonUnreachable as unreachable:
        stored = stored_report(session.env)
        if stored is None:
            raise
        say(str(unreachable))
        document, reached = stored, False
    if document.get("schema") != 1:
        raise JobmondError(
            f"this report has schema {document.get('schema')!r} and jobmonctl reads 1: upgrade it"
        )
    return document, reached


def _narrowed(
    session: Session, document: dict[str, Any], wish: Wish, *, reached: bool
) -> dict[str, Any]:
    if not (wish.words or wish.bucket or wish.since):
        return document
    jobs = chosen(document["jobs"], words=wish.words, bucket=wish.bucket)
    at = parse_instant(wish.since)
    if at is not None:
        jobs = changed(jobs, at, _refs_since(session, wish.since) if reached else frozenset())
    return narrowed(document, jobs)


def _refs_since(session: Session, since: str | None) -> frozenset[str]:
    """Refs with an event since then; the instant of an end may be older than its discovery."""
    refs: set[str] = set()
    query: dict[str, object] = {"since": since, "limit": _PAGE}
    while True:
        answer = session.daemon().get("/v1/events", query)
        refs.update(e["job"]["ref"] for e in answer["events"] if e.get("job"))
        if len(answer["events"]) < _PAGE or not answer.get("last"):
            return frozenset(refs)
        query = {"after": answer["last"], "limit": _PAGE}


def _show_fields(
    session: Session, document: dict[str, Any], names: Sequence[str], view: View
) -> None:
    if session.as_json:
        show_json({**document, "jobs": [fields(job, names) for job in document["jobs"]]})
        return
    found = [fields(job, names) for job in document["jobs"]]
    rows = [[_text(job.get(name)) for name in names] for job in found]
    show(view.table([Column(name, least=6, whole=24) for name in names], rows))


def _text(value: object) -> object:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " ".join(value)
    return json.dumps(value) if isinstance(value, dict | list | bool) else value
