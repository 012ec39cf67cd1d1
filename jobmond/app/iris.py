"""An iris controller as a cluster: who asks it, and about what."""

import asyncio
import getpass
import os
from dataclasses import dataclass
from typing import cast

from jobmond import registry
from jobmond.backends.iris.logs import IrisLogs
from jobmond.clock import SystemClock
from jobmond.ports import Backend, LogSource
from jobmond.settings.clusters import IrisCluster
from jobmond.transports._credential import Authorized, Source
from jobmond.transports.http import HttpClient


@dataclass(frozen=True, slots=True)
class IrisParts:
    """What a controller is asked through."""

    http: Authorized
    backend: Backend
    logs: LogSource


def iris_parts(name: str, table: IrisCluster, *, grace_s: float) -> IrisParts:
    """The parts that `table` describes; `grace_s` is how young a job may be to be missed."""
    clock = SystemClock()
    timeout_s = table.auth_timeout.total_seconds()
    source = Source(table.auth_header_file, table.auth_command, timeout_s)
    http = Authorized(HttpClient(), clock, source)
    each_s = table.call_timeout.total_seconds()
    backend = registry.backends["iris"](
        http,
        clock,
        url=table.url,
        users=table.users or (_user(),),
        grace_s=grace_s,
        max_misses=table.max_misses,
        max_pages=table.max_pages,
        max_bytes=table.max_answer_bytes,
        each_s=each_s,
        remedy=_remedy(name, table),
        discover=table.discover,
        offload=asyncio.to_thread,
    )
    logs = IrisLogs(
        http,
        clock,
        url=table.url,
        max_bytes=table.max_answer_bytes,
        each_s=each_s,
        offload=asyncio.to_thread,
    )
    return IrisParts(http, cast(Backend, backend), logs)


def _user() -> str:
    """Whose jobs are found where nobody is named: those of the user that jobmond runs as."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())  # a user without a name


def _remedy(name: str, table: IrisCluster) -> str:
    """What a person can do when the controller refuses who asks."""
    if table.auth_header_file is not None:
        return f"write a header that is accepted into {table.auth_header_file}"
    if table.auth_command:
        return f"log in again, so that {table.auth_command[0]} prints a header that is accepted"
    return f"set auth_header_file or auth_command of clusters.{name}"
