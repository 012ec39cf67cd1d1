"""What every command has: where it runs, whom it asks, how it prints."""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from typing import Any, TypeVar

import click

from jobmond import __version__
from jobmond.analysis.visible import visible
from jobmond.cli.places import sockets
from jobmond.cli.wire import Daemon
from jobmond.reports.times import instant, since
from jobmond.reports.view import View

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Session:
    """The process around a command. Tests hand in another clock and another pause."""

    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    socket: str | None = None
    as_json: bool = False
    tz: tzinfo | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    _versions: set[str] = field(default_factory=set)  # that were told

    def daemon(self) -> Daemon:
        """The daemon, not yet connected to."""
        candidates = sockets(self.socket, self.env)
        gids = (os.getegid(), *os.getgroups())
        return Daemon(candidates, uid=os.geteuid(), gids=gids, heard=self._heard)

    def _heard(self, version: str) -> None:
        """Say once that the daemon is of another version: what it answers may be, too."""
        if version != __version__ and version not in self._versions:
            self._versions.add(version)
            say(
                f"the daemon is version {visible(version)}, this is {__version__}: "
                "restart the daemon with this version, or use the jobmonctl beside it"
            )

    def view(self, *, ascii_only: bool = False, brief: bool = False) -> View:
        """How text is laid out here: no terminal means full width."""
        fit = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        return View(
            now=self.now(),
            tz=self.tz,
            fit=fit,
            ascii_only=ascii_only or not _unicode(),
            brief=brief,
        )

    def when(self, text: str | None) -> str | None:
        """A person's point in time as the interface's.

        Raises:
            BadParameter: it is none.
        """
        if text is None:
            return None
        try:
            return instant(since(text, now=self.now(), tz=self.tz))
        except ValueError as error:
            raise click.BadParameter(str(error)) from error


def say(text: str) -> None:
    """One line for a person who reads along, where it cannot disturb the output."""
    click.echo(f"jobmonctl: {text}", err=True)


def show(lines: list[str]) -> None:
    """Lines of a report; their text is safe already."""
    click.echo("\n".join(lines))


def show_json(value: object, *, indent: int | None = None, err: bool = False) -> None:
    """JSON in ASCII, so that nothing in it can act on a terminal."""
    click.echo(json.dumps(value, indent=indent), err=err)


def surface(command: F) -> F:
    """The options every command has, and the session as its first argument."""
    passed = click.pass_obj(command)
    for option in (socket_option, json_option):
        passed = option(passed)
    return passed  # type: ignore[return-value] # click's decorators keep the type


def session_of(context: click.Context) -> Session:
    """The session of this context, made from the process where nobody handed one in."""
    if not isinstance(context.obj, Session):
        context.obj = Session()
    return context.obj


def _set_socket(context: click.Context, _: click.Parameter, value: str | None) -> None:
    session = session_of(context)
    context.obj = replace(session, socket=value) if value else session


def _set_json(context: click.Context, _: click.Parameter, value: bool) -> None:
    session = session_of(context)
    context.obj = replace(session, as_json=True) if value else session


def _unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")


socket_option = click.option(
    "--socket",
    metavar="PATH",
    expose_value=False,
    callback=_set_socket,
    help="The daemon's socket; no other place is tried then.",
)
json_option = click.option(
    "--json", is_flag=True, expose_value=False, callback=_set_json, help="JSON instead of text."
)
