"""Requests to the API server of a Kubernetes cluster; the one home of the Kubernetes library.

The library takes seconds and much memory to load: it is loaded at the first request, in a thread,
and never where no such cluster is asked. Its generated calls are not used. They check what the
server says against models of one version, lose whole lists to one odd item, know no limits, and
some of them pass the text of an error on as data.
"""

import asyncio
import contextlib
import importlib
import os
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from jobmond import __version__
from jobmond.analysis.visible import visible
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.ports import Clock, HttpAnswer
from jobmond.transports import _context
from jobmond.transports._kubeconfig import (
    SERVICE_ACCOUNT,
    ask_plugin,
    kubeconfigs,
    named_files,
    stamps,
)

USER_AGENT = f"jobmond/{__version__}"
_EARLY = timedelta(seconds=60)  # credentials are renewed before they expire
_LOOK_S = 30.0  # how often the files of the credentials are looked at
_READ_BYTES = 1 << 16
_SAID_CHARS = 300
_ASK_AGAIN = frozenset({429, 500, 503, 504})  # where the server says after how long


class KubeClient:
    """One API server, asked one request after another; see `jobmond.ports.KubeApi`.

    `kubeconfig` and `context`: None means what kubectl would take, and in a pod without any
    kubeconfig the pod's own `account`. `pin` is a file that keeps the context which was the
    current one at first. `exec_timeout_s` is for a credential plugin. A request is
    sent at most `tries` times while the server throttles; it may ask for at most `patience_s`
    between two. `refusal_lasts`: a refused login is tried again after this, for no account is
    locked by it and an identity service that was down refuses everybody.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        kubeconfig: Path | None = None,
        context: str | None = None,
        pin: Path | None = None,
        env: Mapping[str, str] | None = None,
        account: Path = SERVICE_ACCOUNT,
        connect_timeout_s: float = 10.0,
        exec_timeout_s: float = 30.0,
        tries: int = 4,
        patience_s: float = 30.0,
        refusal_lasts: timedelta = timedelta(hours=1),
    ) -> None:
        self._clock = clock
        self._kubeconfig, self._context, self._pin = kubeconfig, context, pin
        self._env = os.environ if env is None else env
        self._account = account
        self._connect_timeout_s, self._exec_timeout_s = connect_timeout_s, exec_timeout_s
        self._tries, self._patience_s = tries, patience_s
        self._refusal_lasts = refusal_lasts
        self._turn = asyncio.Lock()
        self._api: Any = None
        self._namespace = "default"
        self._files: dict[Path, int] = {}
        self._looked_at = 0.0
        self._expires_at: datetime | None = None
        self._refused_at: datetime | None = None
        self.logins = 0

    async def namespace(self, *, timeout_s: float) -> str:
        """See `jobmond.ports.KubeApi`."""
        await asyncio.to_thread(_library)  # in its own time
        async with _within(timeout_s), self._turn:
            await self._opened()
            return self._namespace

    async def get(
        self, path: str, query: Mapping[str, str], *, timeout_s: float, max_bytes: int
    ) -> HttpAnswer:
        """See `jobmond.ports.KubeApi`."""
        await asyncio.to_thread(_library)
        async with _within(timeout_s) as deadline, self._turn:
            answer = await self._once(path, query, max_bytes)
            if answer.status == 401:
                # Tokens expire, and are renewed by others: one look at what is there now.
                await self._forget()
                answer = await self._once(path, query, max_bytes)
            for _ in range(self._tries - 1):
                wait_s = _throttled(answer)
                if wait_s is None:
                    break
                if wait_s > min(self._patience_s, deadline.left_s()):
                    raise TransientTransportError(
                        f"the API server wants to be left alone for {wait_s:g} s"
                    )
                await asyncio.sleep(wait_s)
                answer = await self._once(path, query, max_bytes)
            return self._taken(answer)

    def _taken(self, answer: HttpAnswer) -> HttpAnswer:
        if answer.status == 401:
            self._refused_at = self._clock.now()
            raise NeedsPersonError(
                "the API server refuses the credentials (401)",
                remedy=f"{self._kubectl()} get jobs",
            )
        if answer.status == 429:
            raise TransientTransportError("the API server throttles (429)")
        return answer

    def _kubectl(self) -> str:
        options = f" --kubeconfig {self._kubeconfig}" if self._kubeconfig else ""
        return f"kubectl{options}" + (f" --context {self._context}" if self._context else "")

    async def acted(self) -> bool:
        """Whether the credentials are others now, or the refusal is old; asks nobody."""
        if self._refused_at is None:
            return await asyncio.to_thread(self._changed)
        over = self._clock.now() - self._refused_at >= self._refusal_lasts
        return over or await asyncio.to_thread(self._changed)

    def _changed(self) -> bool:
        return stamps(self._files) != self._files if self._files else True

    def retry_login(self) -> None:
        """Load credentials that were refused again at the next request."""
        if self._refused_at is not None:
            self._expires_at = self._clock.now()

    async def close(self) -> None:
        """Close the connections; a later request opens them again."""
        await self._forget()

    async def _forget(self) -> None:
        api, self._api = self._api, None
        if api is not None:
            await api.close()

    async def _once(self, path: str, query: Mapping[str, str], max_bytes: int) -> HttpAnswer:
        api = await self._opened()
        rest = api.rest_client
        headers = {"Accept": "application/json, */*", "User-Agent": USER_AGENT}
        # Packed, an answer of a few bytes could be gigabytes.
        headers["Accept-Encoding"] = "identity"
        await api.update_params_for_auth(headers, [], ["BearerToken"])
        timeout = _aiohttp().ClientTimeout(total=None, sock_connect=self._connect_timeout_s)
        with _explained():
            async with rest.pool_manager.get(
                api.configuration.host + path,
                params=dict(query),
                headers=headers,
                timeout=timeout,
                allow_redirects=False,
                proxy=rest.proxy,
                proxy_headers=rest.proxy_headers,
                server_hostname=rest.server_hostname,
            ) as response:
                names = {name.lower(): value for name, value in response.headers.items()}
                return HttpAnswer(response.status, names, await _body(response, max_bytes))

    async def _opened(self) -> Any:
        if self._api is not None and await self._stale():
            await self._forget()
        if self._api is None:
            self.logins += 1
            self._api = await self._logged_in()
            self._refused_at = None
        return self._api

    async def _stale(self) -> bool:
        if self._expires_at is not None and self._clock.now() >= self._expires_at - _EARLY:
            return True
        now = self._clock.monotonic()
        if now - self._looked_at < _LOOK_S:
            return False
        self._looked_at = now
        return await asyncio.to_thread(self._changed)

    async def _logged_in(self) -> Any:
        self._expires_at = None
        client, config = _library()
        paths = await asyncio.to_thread(kubeconfigs, self._kubeconfig, self._env, self._account)
        settings = client.Configuration()
        with _unusable(", ".join(map(str, paths)) or "the pod's account"):
            if paths:
                await self._from_files(config, paths, settings)
            else:
                await asyncio.to_thread(self._from_pod, config, settings)
            return client.ApiClient(settings)

    def _from_pod(self, config: Any, settings: Any) -> None:
        token, authority = self._account / "token", self._account / "ca.crt"
        config.load_incluster_config(
            settings,
            try_refresh_token=False,  # its file is watched like every other
            token_filename=str(token),
            cert_filename=str(authority),
            environ=self._env,
        )
        self._namespace = (self._account / "namespace").read_text("utf-8").strip() or "default"
        self._files = stamps([token, authority])

    async def _from_files(self, config: Any, paths: tuple[Path, ...], settings: Any) -> None:
        module = importlib.import_module("kubernetes_asyncio.config.kube_config")
        merger = await asyncio.to_thread(module.KubeConfigMerger, os.pathsep.join(map(str, paths)))
        merged = merger.config
        source = str(self._kubeconfig or self._env.get("KUBECONFIG") or "")
        pinned = (
            None if self._context else await asyncio.to_thread(_context.kept, self._pin, source)
        )
        if pinned and not merged["contexts"].get_with_name(pinned, safe=True):
            raise _context.missing(pinned, ", ".join(map(str, paths)))
        loader = module.KubeConfigLoader(
            merged,
            active_context=self._context or pinned,
            config_base_path=None,
            config_persister=merger.save_changes,
        )
        context = loader.current_context["context"]
        self._namespace = str(context.get("namespace") or "default")
        named = list(paths)
        cluster = merged["clusters"].get_with_name(context["cluster"])
        named += named_files(cluster["cluster"].value, Path(cluster.path).parent)
        user = merged["users"].get_with_name(context.get("user"), safe=True)
        if user is not None:
            table, base = user["user"].value, Path(user.path).parent
            named += named_files(table, base)
            if isinstance(table.get("exec"), dict):
                await self._by_plugin(table, base)
        self._files = await asyncio.to_thread(stamps, named)
        await loader.load_and_set(settings)
        if not (self._context or pinned):
            name = str(loader.current_context["name"])
            await asyncio.to_thread(_context.keep, self._pin, source, name)

    async def _by_plugin(self, table: dict[str, Any], base: Path) -> None:
        """Put what the plugin says in its place: the library would wait for it without end."""
        spec = table.pop("exec")
        said = await ask_plugin(spec, base, self._env, timeout_s=self._exec_timeout_s)
        table.update(said.table)
        self._expires_at = said.expires_at


def _library() -> tuple[Any, Any]:
    return (
        importlib.import_module("kubernetes_asyncio.client"),
        importlib.import_module("kubernetes_asyncio.config"),
    )


def _aiohttp() -> Any:
    return importlib.import_module("aiohttp")


async def _body(response: Any, max_bytes: int) -> bytes:
    body = bytearray()
    async for part in response.content.iter_chunked(_READ_BYTES):
        body += part
        if len(body) > max_bytes:
            raise TransientTransportError(f"an answer of more than {max_bytes} bytes")
    return bytes(body)


def _throttled(answer: HttpAnswer) -> float | None:
    """For how long the server wants to be left alone; None where it does not say so."""
    if answer.status not in _ASK_AGAIN:
        return None
    said = answer.headers.get("retry-after", "")
    if said.isascii() and said.isdigit():
        return float(said[:9])
    return 1.0 if answer.status == 429 else None


class _Deadline:
    def __init__(self, timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + timeout_s

    def left_s(self) -> float:
        return self._at - self._loop.time()


@contextlib.asynccontextmanager
async def _within(timeout_s: float) -> AsyncIterator[_Deadline]:
    try:
        async with asyncio.timeout(timeout_s):
            yield _Deadline(timeout_s)
    except TimeoutError as late:
        raise TransientTransportError(
            f"the API server gave no whole answer within {timeout_s:g} s"
        ) from late


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """The errors of the network in our words; the library is loaded by now."""
    try:
        yield
    except (_aiohttp().ClientError, OSError) as error:
        raise TransientTransportError(_why(error)) from error


def _why(error: BaseException) -> str:
    http = _aiohttp()
    match error:
        case http.ClientConnectorCertificateError():
            return f"the API server's certificate is not trusted: {_said(error.certificate_error)}"
        case http.ClientConnectorError():
            return f"no connection to the API server at {error.host}:{error.port}: {_os(error)}"
        case http.ClientPayloadError():
            return "the API server's answer was cut short"
        case http.ServerDisconnectedError():
            return "the API server closed the connection without an answer"
    return f"the API server gave no answer: {_said(error) or type(error).__name__}"


def _os(error: Any) -> str:
    number = error.os_error.errno or 0
    return os.strerror(number) if number > 0 else _said(error.os_error.strerror or error.os_error)


def _said(thing: object) -> str:
    return visible(str(thing))[:_SAID_CHARS]


@contextlib.contextmanager
def _unusable(where: str) -> Iterator[None]:
    """What a wrong kubeconfig makes the library say: nothing helps until somebody edits it."""
    errors = importlib.import_module("kubernetes_asyncio.config").ConfigException
    yaml = importlib.import_module("yaml").YAMLError
    odd = (OSError, ssl.SSLError, ValueError, TypeError, LookupError, AttributeError)
    try:
        yield
    except (errors, yaml, AssertionError, *odd) as error:
        raise NeedsPersonError(f"{where} cannot be used: {_said(error)}") from error
