"""`jobmonctl failures`, `followups` and `done`: what failed, what is owed, and closing it."""

import click

from jobmond.cli.session import Session, show_json, surface
from jobmond.cli.session import show as show_lines
from jobmond.reports.failures import failures_text
from jobmond.reports.lists import followups_text


@click.command()
@click.option("--since", metavar="T", help="2h, 3d, 2026-11-29, …; default 30d.")
@click.option("--ascii", "ascii_only", is_flag=True, help="ASCII only.")
@surface
def failures(session: Session, since: str | None, ascii_only: bool) -> None:
    """Show what failed and how often, by signature, the last first."""
    answer = session.daemon().get("/v1/failures", {"since": session.when(since)})
    if session.as_json:
        show_json(answer)
    else:
        show_lines(failures_text(answer["failures"], session.view(ascii_only=ascii_only)))


@click.command()
@click.option("--all", "every", is_flag=True, help="Closed ones too.")
@click.option("--ascii", "ascii_only", is_flag=True, help="ASCII only.")
@surface
def followups(session: Session, every: bool, ascii_only: bool) -> None:
    """List what is owed."""
    answer = session.daemon().get("/v1/followups", {"all": 1 if every else None})
    if session.as_json:
        show_json(answer)
    else:
        show_lines(followups_text(answer["followups"], session.view(ascii_only=ascii_only)))


class _FollowupId(click.IntRange):
    name = "number of a follow-up"


@click.command()
@click.argument("number", metavar="ID", type=_FollowupId(min=1))
@click.option("--verdict", type=click.Choice(["kill", "no-kill"]), help="Of a deep probe.")
@click.option("--note", help="What was found or done.")
@surface
def done(session: Session, number: int, verdict: str | None, note: str | None) -> None:
    """Close a follow-up."""
    body = {"verdict": verdict, "note": note}
    answer = session.daemon().post(f"/v1/followups/{number}/close", body)
    if session.as_json:
        show_json(answer)
    else:
        show_lines([f"{number} is closed"])
