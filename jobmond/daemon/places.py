"""What the configured clusters are called by people and by ssh_config."""

import socket
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any

from jobmond.settings.clusters import SlurmCluster


def names_of(
    tables: Mapping[str, Any], real_name: Callable[[str, Path | None], str | None]
) -> dict[str, Set[str]]:
    """By cluster, in lower case: its name, its hosts and the names behind their aliases; for
    one of this host, the names of this host.
    """
    return {
        name: {word.lower() for word in _names(name, tables[name], real_name)} for name in tables
    }


def _names(name: str, table: Any, real_name: Callable[[str, Path | None], str | None]) -> Set[str]:
    if isinstance(table, SlurmCluster) and table.transport != "local":
        behind = {real_name(host, table.ssh_config_file) for host in table.host}
        return {name, *table.host, *(word for word in behind if word)}
    here = socket.gethostname()
    hosts = set(table.host) if isinstance(table, SlurmCluster) else set()
    return {name, *hosts, "localhost", here, here.partition(".")[0]}


def no_name(host: str, config_file: Path | None) -> str | None:
    """Where no cluster is reached over SSH there are no aliases."""
    return None
