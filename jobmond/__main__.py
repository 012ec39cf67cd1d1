"""The jobmond program: the daemon, one sweep without it, and a check of the configuration."""

import asyncio
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from jobmond import __version__
from jobmond.daemon import start
from jobmond.daemon.detach import into_background
from jobmond.daemon.journal import open_journal
from jobmond.errors import JobmondError
from jobmond.model.state import ClusterStatus
from jobmond.reports.lists import counted
from jobmond.settings import Loaded, load
from jobmond.settings.paths import config_path, home, own_config, state_directory

_FINE = (ClusterStatus.OK, ClusterStatus.INACTIVE)


def _loader(config: str | None) -> Callable[[], Loaded]:
    told: set[str] = set()

    def read() -> Loaded:
        loaded = load(config_path(config, os.environ), os.environ)
        for warning in set(loaded.warnings) - told:
            click.echo(f"jobmond: {warning}", err=True)
        told.clear()
        told.update(loaded.warnings)
        return loaded

    return read


_config = click.option(
    "--config", metavar="FILE", help="Configuration; default see README, none at all is valid."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jobmond")
def program() -> None:
    """Watch machine-learning jobs and say what changed, why it failed and what is owed."""


@program.command()
@_config
@click.option("--socket", metavar="PATH", help="Where jobmonctl finds this daemon.")
@click.option("--detach", is_flag=True, help="Return once it answers; it goes on by itself.")
def run(config: str | None, socket: str | None, detach: bool) -> None:
    """Run the daemon; the first sweep begins at once."""
    said = partial(click.echo, err=True)
    if not detach:
        asyncio.run(start.serve(_loader(config), given_socket=socket, env=os.environ, say=said))
        return
    journal = state_directory(os.environ).absolute() / "journal.log"
    try:
        background = into_background(journal)
    except OSError as error:
        raise JobmondError(f"{journal}: {error.strerror}") from error
    if background is None:
        click.echo(f"jobmond is running; its journal: {journal}")
        return
    with background.telling():
        work = start.serve(
            _loader(config), given_socket=socket, env=os.environ, ready=background.ready
        )
        asyncio.run(work)


@program.command()
@_config
def sweep(config: str | None) -> None:
    """Do one sweep without a daemon, print a line a cluster, and exit.

    Exit code 1 where a cluster did not answer, or while a daemon holds the database.
    """
    results = asyncio.run(start.sweep_once(_loader(config), os.environ))
    for r in results:
        if r.idle and not r.error:
            click.echo(f"{r.cluster}  not asked: nothing is tracked there")
            continue
        more = f": {r.error}" if r.error else ""
        fix = f" (try: {r.remedy})" if r.remedy else ""
        done = f"{counted(r.jobs, 'job')}, {counted(r.changes, 'change')}"
        click.echo(f"{r.cluster}  {r.status}  {done}{more}{fix}")
    if any(r.status not in _FINE for r in results):
        sys.exit(1)


@program.command()
@_config
@click.option("--offline", is_flag=True, help="Contact no cluster.")
def check(config: str | None, offline: bool) -> None:
    """Check configuration, database, folders and clusters: one line each.

    Exit code 1 if anything fails.
    """
    from jobmond.daemon.check import checks

    failed = False
    loaded = _loader(config)()
    for line in asyncio.run(checks(loaded, os.environ, offline=offline)):
        failed = failed or not line.fine
        click.echo(f"{'ok  ' if line.fine else 'FAIL'}  {line.what}: {line.said}")
    if failed:
        sys.exit(1)


@program.command()
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="Try this one; repeatable.")
@click.option("--yes", is_flag=True, help="Ask nothing; without --host try every host.")
@click.option("--output", metavar="FILE", help="Where to write; - prints it.")
@click.option("--force", is_flag=True, help="Replace a configuration that exists.")
@click.option("--ssh-config", metavar="FILE", help="Default ~/.ssh/config.")
def init(
    hosts: tuple[str, ...], yes: bool, output: str | None, force: bool, ssh_config: str | None
) -> None:
    """Write a configuration: list the hosts of your ssh_config and try the chosen ones once."""
    from jobmond.daemon import init as first

    target = (
        None if output == "-" else Path(output).absolute() if output else own_config(os.environ)
    )
    if target is not None:
        first.check_free(target, force=force)
    config = Path(ssh_config).absolute() if ssh_config else None
    chosen = hosts or _chosen_hosts(config or home(os.environ) / ".ssh/config", ask=not yes)
    found = asyncio.run(first.tried(chosen, config))
    for one in found:
        click.echo(f"{one.host}: {one.said}", err=True)
    text = first.configuration(found, config)
    if target is None:
        click.echo(text, nl=False)
        return
    first.write(target, text, os.environ, force=force)
    click.echo(f"written: {target}; `jobmond check` tries it")


def _chosen_hosts(config: Path, *, ask: bool) -> tuple[str, ...]:
    """The hosts to try: all, or those that a person picks from a list."""
    from jobmond.daemon.hosts import ssh_hosts

    known = ssh_hosts(config, home=home(os.environ))
    if not known:
        click.echo(f"{config} names no host: only this one is watched", err=True)
    if not known or not ask:
        return known
    if not sys.stdin.isatty():
        raise click.UsageError("nobody to ask: give --host NAME, or --yes for every host")
    for number, name in enumerate(known, 1):
        click.echo(f"{number:4}  {name}", err=True)
    said = click.prompt("Which of them are clusters? Numbers or names", default="none", err=True)
    words = [] if said == "none" else said.replace(",", " ").split()
    picked = [known[int(w) - 1] if w.isdigit() and 0 < int(w) <= len(known) else w for w in words]
    for name in picked:
        if name not in known:
            raise click.UsageError(f"{name!r} is none of them; --host takes any name")
    return tuple(picked)


@program.command()
@click.option("--user", is_flag=True, help="For one user's service manager, not the host's.")
def unit(user: bool) -> None:
    """Print the unit for systemd, with the path of this program; the README says where it goes."""
    from jobmond.daemon.unit import rendered

    click.echo(rendered(sys.argv[0], user=user), nl=False)


def main() -> None:
    """Entry point; a traceback is a defect, everything else is one line and an exit code."""
    open_journal()
    try:
        program(prog_name="jobmond", standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.Abort:
        sys.exit(130)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except JobmondError as wrong:
        click.echo(f"jobmond: {wrong}", err=True)
        sys.exit(wrong.exit_code)


if __name__ == "__main__":
    main()
