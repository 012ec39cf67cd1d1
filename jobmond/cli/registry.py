"""`jobmonctl import` and `export`: active_jobs.json in and out."""

import sys
from pathlib import Path
from typing import Any

import click

from jobmond.cli.jobs import ADD_S, tell_added
from jobmond.cli.session import Session, say, show_json, surface
from jobmond.cli.wire import ANSWER_S

# The daemon takes no more of an answer in one piece.
_LARGEST_BYTES = 512 * 1024


@click.command("import")
@click.argument("file", metavar="FILE")
@click.option(
    "--watch/--no-watch",
    default=None,
    help="Have the daemon watch FILE and write it back, or no longer.",
)
@surface
def import_(session: Session, file: str, watch: bool | None) -> int:
    """Track the jobs of an active_jobs.json; `-` reads it from standard input."""
    if watch is None:
        text = _text(file)
        body: dict[str, object] = {"text": text}
        timeout_s = max(ANSWER_S, text.count('"id"') * ADD_S)
    else:
        body = {"path": str(Path(file).absolute()), "watch": watch}
        timeout_s = 6 * ANSWER_S
    answer = session.daemon().post("/v1/import", body, timeout_s=timeout_s)
    if session.as_json:
        show_json(answer)
    else:
        _tell(session, answer)
    return max((int(job["exit_code"]) for job in answer["jobs"]), default=0)


def _tell(session: Session, answer: dict[str, Any]) -> None:
    for job in answer["jobs"]:
        tell_added(session, job)
    if answer["watched"]:
        say(f"{answer['watched']} is watched from now on")
    elif not answer["jobs"]:
        say("nothing to track")


def _text(file: str) -> str:
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(_LARGEST_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                raw = opened.read(_LARGEST_BYTES + 1)
        if len(raw) > _LARGEST_BYTES:
            raise click.BadParameter(f"{file}: larger than {_LARGEST_BYTES} bytes")
        return raw.decode("utf-8")
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"{file}: not UTF-8") from error


@click.command()
@surface
def export(session: Session) -> None:
    """Print what is tracked as an active_jobs.json."""
    show_json(session.daemon().get("/v1/export")["jobs"], indent=2)
