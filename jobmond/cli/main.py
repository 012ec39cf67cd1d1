"""The jobmonctl program: asks the daemon, prints, exits with a code that scripts can use."""

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from jobmond import __version__
from jobmond.analysis.visible import visible
from jobmond.cli.events import events
from jobmond.cli.explain import explain, schema
from jobmond.cli.inspect import inspect
from jobmond.cli.jobs import add, history, label, rm, show
from jobmond.cli.launch import run
from jobmond.cli.logs import logs
from jobmond.cli.owed import done, failures, followups
from jobmond.cli.registry import export, import_
from jobmond.cli.session import json_option, session_of, socket_option
from jobmond.cli.status import status
from jobmond.cli.sweeps import discover, sweep
from jobmond.cli.waiting import wait
from jobmond.errors import JobmondError


class Program(click.Group):
    """A group whose every failure is one line and the interface's exit code."""

    def main(  # type: ignore[override] # never returns, where click's may
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        **extra: Any,
    ) -> NoReturn:
        extra["standalone_mode"] = False
        try:
            code = super().main(args, prog_name, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message())
            sys.exit(2)
        except click.ClickException as error:
            _complain(error.format_message() + _hint(error))
            sys.exit(error.exit_code)
        except JobmondError as error:
            _complain(str(error))
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(130)
        except BrokenPipeError:
            _let_go()
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    click.echo("jobmonctl: " + visible(" ".join(text.split("\n"))), err=True)


def _hint(error: click.ClickException) -> str:
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    if getattr(error, "possibilities", None):
        return ""
    return f" (see `{error.ctx.command_path} --help`)"


def _let_go() -> None:
    # The reader of our output is gone; without this the interpreter complains at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="jobmonctl")
@socket_option
@json_option
@click.pass_context
def program(context: click.Context) -> None:
    """Ask jobmond about machine-learning jobs.

    JOB is a ref (cluster/id), a bare id where only one cluster has it, or a unique name.
    Exit codes: 0 done, 1 failed or refused, 2 usage, 3 no daemon, 4 alarm (status --exit-code),
    5 timed out (wait).
    """
    session_of(context)


for _command in (
    status, add, run, label, rm, wait, logs, show, history, events, discover, sweep,
    failures, followups, done, import_, export, explain, schema, inspect,
):  # fmt: skip
    program.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; ends the process."""
    program.main(arguments, "jobmonctl")


if __name__ == "__main__":
    main()
