"""`jobmonctl logs`: a job's log through the daemon's connection."""

from typing import Any

import click

from jobmond.analysis.visible import visible
from jobmond.cli.session import Session, say, show_json, surface
from jobmond.model.state import TERMINAL

_EVERY_S = 5.0  # each look is a command on a login node
_ANSWER_S = 130.0  # the far side gets the time a sweep gets


@click.command()
@click.argument("job")
@click.option("-n", "lines", type=click.IntRange(0, 10_000), default=100, help="Last N lines.")
@click.option("-f", "follow", is_flag=True, help="Go on as the log grows, until the job ends.")
@surface
def logs(session: Session, job: str, lines: int, follow: bool) -> int:
    """Print a job's log, secrets masked."""
    part = _read(session, {"job": job, "n": lines})
    _print(session, part)
    while follow:
        ended = _ended(session, job)
        session.pause(0 if ended else _EVERY_S)
        part = _read(session, {"job": job, "after": part.get("next"), "n": 10_000})
        _print(session, part)
        if ended and not part.get("text"):
            break
    return 0 if part.get("status") in ("read", "empty") else 1


def _read(session: Session, query: dict[str, object]) -> dict[str, Any]:
    answer: dict[str, Any] = session.daemon().get("/v1/job/log", query, timeout_s=_ANSWER_S)
    return answer


def _ended(session: Session, job: str) -> bool:
    found = session.daemon().get("/v1/job", {"job": job})["job"]
    return found["state"] in TERMINAL or not found.get("tracked")


def _print(session: Session, part: dict[str, Any]) -> None:
    if session.as_json:
        show_json(part)
    elif part.get("text"):
        click.echo(printable(part["text"]), nl=False)
    if part.get("status") not in ("read", "empty"):
        why = f": {part['error']}" if part.get("error") else ""
        say(visible(f"log {part.get('status')} ({part.get('path') or 'no path known'}){why}"))


def printable(text: str) -> str:
    """Log text with progress bars on lines of their own and nothing a terminal would act on."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return visible(lines, keep="\n\t")
