"""`jobmonctl run`: a local process in the foreground, tracked from its first breath to its end."""

import os
import shlex
import sys
import threading
from pathlib import Path
from typing import Any

import click

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import visible
from jobmond.cli.child import Child
from jobmond.cli.places import runs_directory
from jobmond.cli.record import Record, birth_of, me, write
from jobmond.cli.session import Session, say, show_json, surface
from jobmond.errors import JobmondError
from jobmond.reports.choose import the_bucket
from jobmond.reports.times import instant

_NOT_FOUND, _NOT_RUNNABLE = 127, 126
_NAME_CHARS, _PROSE_CHARS, _COMMAND_CHARS = 256, 4096, 8192  # what a daemon takes and reads
_ANNOUNCE_S = 3.0  # nobody waits longer for a daemon than for their own program


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, metavar="-- CMD...", type=click.UNPROCESSED)
@click.option("--name", help="Default: the program's name.")
@click.option("--description")
@click.option("--label", "labels", multiple=True, metavar="LABEL")
@click.option("--bucket", help="rl, sft, datagen, eval or other.")
@click.option("--type", "type_", help="The Type shown in the Catch-all list.")
@click.option("--run", "run_name", help="The name that restart copies share.")
@surface
def run(
    session: Session,
    *,
    command: tuple[str, ...],
    name: str | None,
    description: str | None,
    labels: tuple[str, ...],
    bucket: str | None,
    type_: str | None,
    run_name: str | None,
) -> int:
    """Run CMD in the foreground and track it; exits with its code, 128+n for a signal.

    Works without a daemon too: the result is written down, and a daemon that starts later finds
    it.
    """
    wish = {
        "name": name,
        "description": description,
        "labels": list(labels) or None,
        "bucket": the_bucket(bucket) if bucket is not None else None,
        "type": type_,
        "run": run_name,
    }
    return _Run(session, command, wish).to_the_end()


class _Run:
    """One process and what is told about it. Whatever fails here never fails the process."""

    def __init__(self, session: Session, command: tuple[str, ...], wish: dict[str, Any]) -> None:
        self._session = session
        self._command = command
        self._wish = wish
        self._ref: str | None = None
        self._announcing: threading.Thread | None = None

    def to_the_end(self) -> int:
        sys.stdout.flush()
        started_at = instant(self._session.now()) or ""
        try:
            child = Child(self._command)
        except FileNotFoundError:
            say(visible(f"{self._command[0]}: not found"))
            return _NOT_FOUND
        except OSError as error:
            say(visible(f"{self._command[0]}: {error.strerror}"))
            return _NOT_RUNNABLE
        folder = self._folder()
        record = self._record(child.pid, folder, started_at)
        self._keep(child, record)
        if record is not None:
            self._write(folder, record)
            self._announcing = threading.Thread(target=self._announce, args=(record,), daemon=True)
            self._announcing.start()
        status = child.wait()
        if record is not None:
            self._end(folder, record.ended(status, self._session.now()))
        child.release()
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def _folder(self) -> Path | None:
        try:
            return runs_directory(self._session.env)
        except (OSError, JobmondError) as error:
            say(visible(f"nothing is written down about this run: {error}"))
            return None

    def _record(self, pid: int, folder: Path | None, started_at: str) -> Record | None:
        try:
            birth = birth_of(pid)
        except (OSError, ValueError, IndexError) as error:
            say(visible(f"this run is not tracked: /proc does not tell of it ({error})"))
            return None
        log = str(folder / f"{pid}-{birth.rpartition(':')[2]}.log") if folder else None
        return Record(
            pid=pid,
            birth=birth,
            name=visible(mask(self._wish["name"] or Path(self._command[0]).name))[:_NAME_CHARS],
            command=_bounded(self._command),
            log=log,
            workdir=_workdir(),
            user=me(),
            started_at=started_at,
            description=mask(self._wish["description"] or "")[:_PROSE_CHARS] or None,
            labels=tuple(self._wish["labels"] or ()),
            bucket=self._wish["bucket"],
            type=self._wish["type"],
            run=mask(self._wish["run"]) if self._wish["run"] else None,
        )

    def _keep(self, child: Child, record: Record | None) -> None:
        log = Path(record.log) if record is not None and record.log is not None else None
        try:
            child.pass_through(log)
        except OSError as error:
            say(visible(f"no log is kept: {error}"))
            child.pass_through(None)

    def _write(self, folder: Path | None, record: Record) -> None:
        if folder is None:
            return
        try:
            write(folder, record)
        except OSError as error:
            say(visible(f"not written down: {error}"))

    def _announce(self, record: Record, *, again: bool = False) -> None:
        body = {
            **self._wish,
            "description": record.description,
            "pid": record.pid,
            "birth": record.start_ticks,
            "boot_id": record.boot_id,
            "name": record.name,
            "command": visible(_line(record.command))[:_COMMAND_CHARS],
            "log": record.log,
            "workdir": record.workdir if record.workdir.isprintable() else None,
            "user": record.user,
            "started_at": record.started_at,
        }
        try:
            answer = self._session.daemon().post("/v1/local", body, timeout_s=_ANNOUNCE_S)
        except JobmondError as error:
            if not again:
                say(visible(f"{error}; this run is written down and will be found"))
            return
        self._ref = answer.get("ref")

    def _end(self, folder: Path | None, record: Record) -> None:
        self._write(folder, record)
        if self._announcing is not None:
            self._announcing.join(_ANNOUNCE_S + 1)
            if self._ref is None and not self._announcing.is_alive():
                self._announce(record, again=True)  # a daemon may have been started meanwhile
        if self._ref is not None:
            body = {
                "ref": self._ref,
                "exit_code": record.exit_code,
                "signal": record.signal,
                "ended_at": record.ended_at,
            }
            try:
                self._session.daemon().post("/v1/local/exit", body, timeout_s=_ANNOUNCE_S)
            except JobmondError as error:
                say(visible(f"{error}; the end is written down and will be found"))
        if self._session.as_json:
            end = {"ref": self._ref, "exit_code": record.exit_code, "signal": record.signal}
            show_json(end, err=True)


def _bounded(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command as it is, or as one word where it holds a secret or is very long."""
    joined = shlex.join(command)
    whole = mask(joined)
    if whole != joined:
        return (whole[:_COMMAND_CHARS],)
    return command if len(whole) <= _COMMAND_CHARS else (whole[:_COMMAND_CHARS],)


def _line(command: tuple[str, ...]) -> str:
    return command[0] if len(command) == 1 else shlex.join(command)


def _workdir() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - a string is wanted
    except FileNotFoundError:
        return "/"  # the folder was removed under us
