"""HTTP requests that say who asks, with what a file or a command of this host gives."""

import asyncio
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from jobmond.analysis.mask import mask
from jobmond.analysis.visible import readable, visible
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.ports import Clock, HttpAnswer, HttpApi
from jobmond.transports import _process

_FILE_BYTES = 64 * 1024
_SAID_CHARS = 200
_GRACE_S = 1.0
_KEPT_S = 300.0  # how long the answer of a command is used; tokens last an hour
_NAMED = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+):[ \t]*(.*)")
# What frames a request is never for a file to say.
_NOT_HERE = frozenset(
    {"host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade"}
)
_REFUSED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


@dataclass(frozen=True, slots=True)
class Source:
    """Where headers come from: a `file`, and what a `command` prints within `timeout_s`.

    Of a header that both give, the command's counts.
    """

    file: Path | None = None
    command: tuple[str, ...] = ()
    timeout_s: float = 30.0


class Authorized:
    """Requests with the header that `source` gives; see `jobmond.ports.HttpApi`.

    A line is sent as `Authorization`, or, where it begins with a name and a colon, as the header
    of that name (a proxy before the controller wants `Proxy-Authorization`). A file is read anew
    for each request; a command is run again after a while, and at once when what it gave is
    refused. Nothing that they give is ever part of a message.
    """

    logins = 0  # nobody logs in: each request says who asks

    def __init__(self, http: HttpApi, clock: Clock, source: Source) -> None:
        self._http, self._clock, self._source = http, clock, source
        self._held: tuple[float, Mapping[str, str]] | None = None
        self._refused: Mapping[str, str] | None = None
        self._failed = False
        self._running = asyncio.Lock()

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        timeout_s: float,
        max_bytes: int,
    ) -> HttpAnswer:
        """See `jobmond.ports.HttpApi`. A header that cannot be had is `NeedsPersonError`."""

        async def send(who: Mapping[str, str]) -> HttpAnswer:
            return await self._http.request(
                method,
                url,
                headers={**headers, **who},
                body=body,
                timeout_s=timeout_s,
                max_bytes=max_bytes,
            )

        who = await self._who()
        answer = await send(who)
        if answer.status in _REFUSED and self._source.command:
            who, before = await self._who(anew=True), who
            answer = await send(who) if who != before else answer
        self._refused = who if answer.status in _REFUSED else None
        return answer

    async def acted(self) -> bool:
        """Whether the header is another one than was refused; contacts nobody but the command.

        True where nothing was refused yet: a person has changed the configuration, or started
        the daemon again.
        """
        if self._refused is None and not self._failed:
            return True
        try:
            return await self._who(anew=True) != self._refused
        except (NeedsPersonError, TransientTransportError):
            return False

    async def close(self) -> None:
        await self._http.close()

    async def _who(self, *, anew: bool = False) -> Mapping[str, str]:
        try:
            found = await self._found(anew=anew)
        except (NeedsPersonError, TransientTransportError):
            self._failed = True
            raise
        self._failed = False
        return found

    async def _found(self, *, anew: bool) -> Mapping[str, str]:
        found: Mapping[str, str] = {}
        if self._source.file is not None:
            found = await asyncio.to_thread(_from_file, self._source.file)
        if not self._source.command:
            return found
        async with self._running:
            now = self._clock.monotonic()
            if self._held is None or anew or now - self._held[0] >= _KEPT_S:
                self._held = (now, await _from_command(self._source))
            return {**found, **self._held[1]}


def _from_file(path: Path) -> Mapping[str, str]:
    try:
        with path.open("rb") as file:
            return headers(file.read(_FILE_BYTES), str(path))
    except OSError as error:
        raise NeedsPersonError(f"{path}: {error.strerror or 'cannot be read'}") from error


async def _from_command(source: Source) -> Mapping[str, str]:
    program = source.command[0]
    try:
        said = await _process.said(source.command, timeout_s=source.timeout_s, grace_s=_GRACE_S)
    except TimeoutError:
        raise TransientTransportError(
            f"auth_command {program} did not end within {source.timeout_s:g} s"
        ) from None
    except OSError as error:
        raise NeedsPersonError(
            f"auth_command {program} cannot be started: {error.strerror}"
        ) from error
    if said.status is None or len(said.stdout) > _FILE_BYTES:
        raise NeedsPersonError(f"auth_command {program} printed more than a header")
    if said.status != 0:
        last = mask(readable(said.stderr).strip().rpartition("\n")[2])
        why = f": {visible(last)[:_SAID_CHARS]}" if last else ""
        raise NeedsPersonError(
            f"auth_command {program} ended with {said.status}{why}",
            remedy=shlex.join(source.command) if len(source.command) == 1 else None,
        )
    return headers(said.stdout, f"auth_command {program}")


def headers(raw: bytes, where: str) -> dict[str, str]:
    """The headers that `raw` gives, by name; `where` is what an error names, never `raw`.

    Raises:
        NeedsPersonError: none, two under one name, one that frames requests, or no plain text.
    """
    lines = [line.strip(b" \t\r") for line in raw.split(b"\n")]
    found: dict[str, str] = {}
    for line in filter(None, lines):
        if not all(0x20 <= byte < 0x7F or byte == 0x09 for byte in line):
            raise NeedsPersonError(f"{where}: a header is one line of printable ASCII")
        named = _NAMED.fullmatch(line.decode("ascii"))
        name, value = named.groups() if named else ("authorization", line.decode("ascii"))
        if name.lower() in _NOT_HERE or name.lower() in found or not value:
            raise NeedsPersonError(f"{where}: expected one line, such as Bearer and a token")
        found[name.lower()] = value
    if not found:
        raise NeedsPersonError(f"{where} gives no header")
    return found
