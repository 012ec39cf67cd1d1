"""What a host is called behind its alias."""

import re
from pathlib import Path

import asyncssh

from jobmond.transports.ssh.plan import Route, config_paths

# Programs of `Match exec` get the host in their command line.
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,254}")


def real_name(host: str, config_file: Path | None = None) -> str | None:
    """The HostName that ssh_config gives for `host`, else `host`; None for what is no host.

    Blocks: reads files, and `Match exec` runs programs. Contacts nobody.
    """
    if not _HOST.fullmatch(host):
        return None
    try:
        options = asyncssh.SSHClientConnectionOptions(
            config=config_paths(Route(host, config_file=config_file)),
            host=host,
            known_hosts=b"",
            client_keys=None,
        )
    except (OSError, ValueError, asyncssh.Error):
        return None
    return str(options.host)
