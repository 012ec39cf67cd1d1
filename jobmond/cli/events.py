"""`jobmonctl events`: transitions and signals as they happen."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from jobmond.cli.session import Session, say, show_json, surface
from jobmond.cli.wire import ANSWER_S
from jobmond.errors import DaemonUnreachable
from jobmond.reports.lists import event_line
from jobmond.reports.times import instant

_WAIT_S = 30
_PAGE = 1000
_AGAIN_S = 5.0


@click.command()
@click.option("--after", metavar="KEY", help="Only what came after the event with this key.")
@click.option("--since", metavar="T", help="2h, 12:30, 2026-11-29, …")
@click.option("--follow", is_flag=True, help="Go on printing as things happen.")
@surface
def events(session: Session, after: str | None, since: str | None, follow: bool) -> None:
    """Show what happened, one event a line (JSON: one object a line)."""
    query = {"after": after, "since": session.when(since)}
    for news in stream(session, query, follow=follow):
        if session.as_json:
            show_json(news)
        else:
            click.echo(event_line(news, session.view()))


def stream(
    session: Session, query: Mapping[str, object], *, follow: bool
) -> Iterator[Mapping[str, Any]]:
    """Events in order; with `follow` for ever, over restarts of the daemon.

    Following without a starting point begins now.
    """
    place = {k: v for k, v in query.items() if v is not None}
    if follow and not place:
        place = {"since": instant(session.now())}
    answer = session.daemon().get("/v1/events", {**place, "limit": _PAGE})
    while True:
        yield from answer["events"]
        if answer.get("last"):
            place = {"after": answer["last"]}
        if not follow and (len(answer["events"]) < _PAGE or "after" not in place):
            return
        answer = _next(session, {**place, "limit": _PAGE}, wait_s=_WAIT_S if follow else 0)


def _next(session: Session, query: Mapping[str, object], *, wait_s: int) -> dict[str, Any]:
    said = False
    while True:
        started = session.monotonic()
        try:
            answer = session.daemon().get(
                "/v1/events", {**query, "wait_s": wait_s or None}, timeout_s=ANSWER_S + wait_s
            )
        except DaemonUnreachable as unreachable:
            if not wait_s:
                raise
            if not said:
                say(f"{unreachable}; waiting for it")
            said = True
            session.pause(_AGAIN_S)
            continue
        if wait_s and not answer["events"] and session.monotonic() - started < 1:
            session.pause(1)  # a daemon that is shutting down answers at once
        return answer
