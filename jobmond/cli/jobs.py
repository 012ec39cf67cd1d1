"""Commands about single jobs: add, label, rm, show, history."""

import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from jobmond.cli.session import Session, say, show_json, surface
from jobmond.cli.session import show as show_lines
from jobmond.cli.wire import ANSWER_S
from jobmond.model.state import FILE_REF, Kind
from jobmond.reports.choose import nearest, the_bucket
from jobmond.reports.lists import history_text
from jobmond.reports.show import show_text

# What the daemon may take for one of many jobs that are added at once.
ADD_S = 0.1

_SUBMITTED = re.compile(r"(?:.*\s)?Submitted batch job (\d+)(?:\s.*)?")
_PARSABLE = re.compile(r"(\S+?)(?:;\S*)?")
_CHOICES = ("bucket", "run", "name", "description", "type")


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--id", "more_ids", multiple=True, metavar="ID", help="The same as ID.")
@click.option("--kind", type=click.Choice([str(k) for k in Kind]))
@click.option("--cluster", help="Where the job runs; needed where ID alone is ambiguous.")
@click.option("--name")
@click.option("--description")
@click.option("--label", "labels", multiple=True, metavar="LABEL")
@click.option("--bucket", help="rl, sft, datagen, eval or other.")
@click.option("--type", "type_", help="The Type shown in the Catch-all list.")
@click.option("--run", help="The name that restart copies share.")
@click.option("--user")
@click.option("--log", "log", metavar="PATH", help="Where the job's log is.")
@click.option("--nel-command", metavar="CMD", help="How nel is called for this job.")
@click.option("--nel-home", metavar="DIR", help="The home folder of whoever called nel.")
@click.option("--submitted", metavar="T", help="When it was submitted, as a hint.")
@surface
def add(
    session: Session,
    *,
    ids: tuple[str, ...],
    more_ids: tuple[str, ...],
    kind: str | None,
    cluster: str | None,
    name: str | None,
    description: str | None,
    labels: tuple[str, ...],
    bucket: str | None,
    type_: str | None,
    run: str | None,
    user: str | None,
    log: str | None,
    nel_command: str | None,
    nel_home: str | None,
    submitted: str | None,
) -> int:
    """Track jobs. `-` reads ids, or lines `Submitted batch job N`, from standard input."""
    wanted = [*_expanded(ids), *more_ids]
    if not wanted and kind == Kind.LAUNCHER and log is not None:
        wanted = [FILE_REF + Path(log).name]  # until the file names its experiment
    if not wanted:
        raise click.UsageError("name at least one ID, or `-` to read them from standard input")
    body = {
        "ids": wanted,
        "kind": kind,
        "cluster": cluster,
        "name": name,
        "description": description,
        "labels": list(labels) or None,
        "bucket": the_bucket(bucket) if bucket is not None else None,
        "type": type_,
        "run": run,
        "user": user,
        "log": _log_path(log, kind) if log is not None else None,
        "nel_command": shlex.split(nel_command) if nel_command else None,
        "nel_home": str(Path(nel_home).expanduser().absolute()) if nel_home else None,
        "submitted_at": session.when(submitted),
    }
    timeout_s = max(ANSWER_S, len(wanted) * ADD_S)
    jobs = session.daemon().post("/v1/jobs", body, timeout_s=timeout_s)["jobs"]
    for job in jobs:
        tell_added(session, job)
    return max((int(job.get("exit_code") or bool(job.get("error"))) for job in jobs), default=0)


def _expanded(ids: Iterable[str]) -> list[str]:
    wanted: list[str] = []
    for word in ids:
        if word == "-":
            wanted += ids_in(sys.stdin)
        else:
            wanted.append(word)
    return wanted


def ids_in(lines: Iterable[str]) -> list[str]:
    """Ids among what submit programs print: `Submitted batch job N`, `N`, `N;cluster`.

    Other lines are chatter and are said to be left out.
    """
    found = []
    for line in lines:
        text = line.strip()
        match = _SUBMITTED.fullmatch(text) or _PARSABLE.fullmatch(text)
        if match:
            found.append(match[1])
        elif text:
            say(f"no id in {text[:80]!r}, left out")
    return found


def _log_path(text: str, kind: str | None) -> str:
    if text.startswith("/"):
        return text
    if kind in (Kind.LOCAL, Kind.LAUNCHER):
        return str(Path(text).absolute())
    raise click.BadParameter(f"--log needs an absolute path, not {text!r}: it is on the cluster")


def tell_added(session: Session, job: dict[str, Any]) -> None:
    """One line about one id that was to be tracked."""
    if session.as_json:
        show_json({key: value for key, value in job.items() if value is not None})
    elif job.get("error"):
        say(str(job["error"]))
    else:
        what = f"{job['ref']} added" if job.get("created") else job.get("note")
        what = what or f"{job['ref']} was tracked already"
        guess = f" ({job['guessed']})" if job.get("guessed") else ""
        show_lines([session.view().safe(f"{what}{guess}")])


@click.command()
@click.argument("job")
@click.argument("changes", nargs=-1, required=True, metavar="CHANGE...")
@surface
def label(session: Session, job: str, changes: tuple[str, ...]) -> None:
    """Change a job: +label adds, ~label removes; bucket= run= name= description= type= set."""
    answer = session.daemon().ask("PATCH", "/v1/job", query={"job": job}, body=change(changes))
    changed = answer["job"]
    if session.as_json:
        show_json(changed)
        return
    labels = " ".join(changed.get("labels") or ()) or "none"
    text = f"{changed['ref']}: bucket {changed['bucket']}, run {changed['run']}, labels {labels}"
    show_lines([session.view().safe(text)])


def change(words: Iterable[str]) -> dict[str, object]:
    """The words of `label` as a request.

    Raises:
        UsageError: a word that is neither `+x`, `~x` nor `key=value` of a known key.
        ConfigError: no such bucket.
    """
    added: list[str] = []
    removed: list[str] = []
    body: dict[str, object] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if len(word) > 1 and word[0] in "+~":
            (added if word[0] == "+" else removed).append(word[1:])
        elif equals and key in _CHOICES and value:
            body[key] = the_bucket(value) if key == "bucket" else value
        elif equals and key not in _CHOICES:
            raise click.UsageError(f"no key {key!r}{nearest(key, _CHOICES)}; {_usage()}")
        else:
            raise click.UsageError(f"{word!r} says nothing to change: {_usage()}")
    return {**body, "labels_add": added or None, "labels_remove": removed or None}


def _usage() -> str:
    return "write +label, ~label or one of " + " ".join(f"{key}=" for key in _CHOICES)


@click.command()
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
@surface
def rm(session: Session, jobs: tuple[str, ...]) -> None:
    """Stop tracking jobs. Never touches the jobs themselves."""
    daemon = session.daemon()
    for word in jobs:
        answer = daemon.ask("DELETE", "/v1/job", query={"job": word})
        if session.as_json:
            show_json(answer)
        else:
            show_lines([session.view().safe(f"{answer['ref']} is no longer tracked")])


@click.command()
@click.argument("job")
@click.option("--ascii", "ascii_only", is_flag=True, help="ASCII only.")
@surface
def show(session: Session, job: str, ascii_only: bool) -> None:
    """Show one job in full."""
    found = session.daemon().get("/v1/job", {"job": job})["job"]
    if session.as_json:
        show_json(found)
    else:
        show_lines(show_text(found, session.view(ascii_only=ascii_only)))


@click.command()
@click.argument("job", required=False)
@click.option("--since", metavar="T", help="2h, 3d, 2026-11-29, …")
@click.option("--ascii", "ascii_only", is_flag=True, help="ASCII only.")
@surface
def history(session: Session, job: str | None, since: str | None, ascii_only: bool) -> None:
    """Show what ended."""
    query = {"since": session.when(since), "job": job}
    jobs = session.daemon().get("/v1/history", query)["jobs"]
    if session.as_json:
        show_json({"jobs": jobs})
    else:
        show_lines(history_text(jobs, session.view(ascii_only=ascii_only)))
