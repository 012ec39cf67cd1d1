"""A first configuration: which hosts of the ssh_config are clusters, tried once each."""

import asyncio
import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobmond import registry
from jobmond.analysis.visible import readable, visible
from jobmond.backends.slurm.script import ELSEWHERE
from jobmond.daemon.hosts import HOST
from jobmond.errors import ConfigError, JobmondError, NeedsPersonError, Refused, TransportError
from jobmond.settings import load

PROBE_S = 30.0
_AT_ONCE = 4
_PROGRAMS = ("squeue", "sacct", "kubectl")
_SCRIPT = f'PATH="$PATH":{ELSEWHERE}\nfor p in {" ".join(_PROGRAMS)}; do command -v "$p"; done; :'

_HEAD = """\
# The configuration of jobmond, begun by `jobmond init`. `jobmond check` tries all of it;
# config.example.toml has every setting at its default with what it does.

# How often clusters are asked.
poll_interval = "15m"

# This host: its processes, and its SLURM where there is one. Without it only what is named below
# is watched.
[clusters.local]
kind = "local"
discover = true
"""


@dataclass(frozen=True, slots=True)
class Tried:
    """One host that was contacted once: the programs it has, or why it gave no answer.

    `remedy` is what a person can do; None where trying again later can help by itself.
    """

    host: str
    programs: frozenset[str] = frozenset()
    error: str | None = None
    remedy: str | None = None

    @property
    def said(self) -> str:
        """One line for a person."""
        if self.error is not None:
            return f"{self.error} (try: {self.remedy})" if self.remedy else self.error
        if "squeue" not in self.programs:
            return "answers, but there is no squeue"
        return "answers and has SLURM" + ("" if "sacct" in self.programs else ", without sacct")


async def tried(hosts: Sequence[str], ssh_config: Path | None) -> list[Tried]:
    """Contact every host once, a few at a time.

    Raises:
        ConfigError: one of them is no host name, or the ssh_config is not there.
    """
    for host in hosts:
        if not HOST.fullmatch(host):
            raise ConfigError(f"{host[:80]!r} is no host name; a user belongs into your ssh_config")
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(host: str) -> Tried:
        async with room:
            return await _try(host, ssh_config)

    return list(await asyncio.gather(*map(one, hosts)))


async def _try(host: str, ssh_config: Path | None) -> Tried:
    transport = registry.transports["ssh"](hosts=(host,), ssh_config_file=ssh_config, channels=1)
    try:
        answer = await transport.run(_SCRIPT.encode(), timeout_s=PROBE_S, max_bytes=65536)
    except NeedsPersonError as error:
        return Tried(host, error=_one_line(error), remedy=error.remedy or f"ssh {host}")
    except TransportError as error:
        return Tried(host, error=_one_line(error))
    finally:
        await transport.close()
    names = {line.rpartition("/")[2].strip() for line in readable(answer.stdout).splitlines()}
    return Tried(host, frozenset(names & set(_PROGRAMS)))


def _one_line(error: JobmondError) -> str:
    return visible(" ".join(str(error).split()))


def configuration(found: Iterable[Tried], ssh_config: Path | None) -> str:
    """The text of a configuration with these hosts."""
    parts = [_HEAD]
    taken = {"local"}
    for one in found:
        name = _cluster_name(one.host, taken)
        taken.add(name)
        parts.append(_section(name, one, ssh_config))
    return "\n".join(parts)


def _section(name: str, one: Tried, ssh_config: Path | None) -> str:
    comments = [f"{one.host}: {one.said}."]
    active = True
    if one.error is not None:
        active = False
        comments.append("Remove `active = false` once it works; `jobmond check` tries it.")
        if one.remedy is not None:
            comments.append('Where it wants a second factor, add: transport = "openssh"')
    elif "sacct" in one.programs:
        comments.append("Every job of mine there is tracked without `jobmonctl add`.")
    else:
        comments.append("How a job ended that has left the queue will not be known there.")
    lines = [f"[clusters.{_key(name)}]", 'kind = "slurm"', f"host = {json.dumps(one.host)}"]
    if ssh_config is not None:
        lines.append(f"ssh_config_file = {json.dumps(str(ssh_config))}")
    lines.append("discover = true" if active else "active = false")
    if one.error is None and "squeue" not in one.programs:
        comments[1:] = ["If its SLURM is not on PATH, uncomment this and name the folder:"]
        lines = [f"#{line}" for line in (*lines, 'bin_dir = "/path/to/slurm/bin"')]
    return "\n".join([*(f"# {comment}" for comment in comments), *lines, ""])


def _cluster_name(host: str, taken: set[str]) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]", "-", host)[:60]
    name = name if name[:1].isalnum() else f"c{name}"
    number = 1
    found = name
    while found in taken:
        number += 1
        found = f"{name}-{number}"
    return found


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def check_free(path: Path, *, force: bool) -> None:
    """Before anybody is contacted.

    Raises:
        Refused: there is a configuration already.
    """
    if not force and (path.exists() or path.is_symlink()):
        raise Refused(f"{path} exists and is left alone; --force replaces it")


def write(path: Path, text: str, env: Mapping[str, str], *, force: bool) -> None:
    """Put the configuration there, whole and for its owner only, once it is known to be valid.

    Raises:
        Refused: there is one already.
        JobmondError: it cannot be written.
    """
    draft: Path | None = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".config.", suffix=".toml", dir=path.parent)
        draft = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        load(draft, {key: env[key] for key in ("HOME", "XDG_STATE_HOME") if key in env})
        if force:
            draft.replace(path)
        else:
            os.link(draft, path)  # unlike a rename this replaces nothing
    except FileExistsError as error:
        raise Refused(f"{path} exists and is left alone; --force replaces it") from error
    except OSError as error:
        raise JobmondError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        if draft is not None:
            draft.unlink(missing_ok=True)
