"""HTTP requests to receivers and controllers elsewhere; the one home of the HTTP library."""

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Iterator, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

from jobmond import __version__
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.ports import HttpAnswer

USER_AGENT = f"jobmond/{__version__}"
_KEPT_OPEN_S = 5.0
# Of the time for a request, for the connection and again for its encryption: the library leaves
# a socket open where it is cancelled in between, but not where its own time is up.
_CONNECT_SHARE = 0.4

# The library writes whole URLs to its journal, and a URL can be a secret.
for _name in ("httpx2", "httpcore2"):
    logging.getLogger(_name).setLevel(logging.WARNING)


class HttpClient:
    """Requests over connections that are shared and kept open for a moment.

    Certificates are checked against those this host trusts (`SSL_CERT_FILE` and `SSL_CERT_DIR` are
    honoured), proxies are those of the environment, no cookie is kept, no redirect followed.
    """

    def __init__(self) -> None:
        self._client: httpx2.AsyncClient | None = None

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
        """See `jobmond.ports.HttpApi`."""
        # Packed, an answer of a few bytes could be gigabytes.
        sent = {"user-agent": USER_AGENT, "accept-encoding": "identity", **headers}
        limits = httpx2.Timeout(timeout_s, connect=timeout_s * _CONNECT_SHARE)
        with _explained(timeout_s):
            async with (
                asyncio.timeout(timeout_s),
                self._opened().stream(
                    method, url, headers=sent, content=body, timeout=limits
                ) as response,
            ):
                return await _whole(response, max_bytes)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _opened(self) -> httpx2.AsyncClient:
        if self._client is None:
            try:
                self._client = httpx2.AsyncClient(
                    follow_redirects=False,
                    limits=httpx2.Limits(keepalive_expiry=_KEPT_OPEN_S),
                    cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                )
            except (ImportError, ValueError, httpx2.InvalidURL):
                raise NeedsPersonError(
                    "the proxy settings of the environment cannot be used (HTTP_PROXY, HTTPS_PROXY,"
                    " ALL_PROXY, NO_PROXY)"
                ) from None  # a proxy's URL can hold a password
        return self._client


async def _whole(response: httpx2.Response, max_bytes: int) -> HttpAnswer:
    body = b""
    async for part in response.aiter_raw():
        body += part
        if len(body) >= max_bytes:
            break
    return HttpAnswer(response.status_code, dict(response.headers), body[:max_bytes])


@contextlib.contextmanager
def _explained(timeout_s: float) -> Iterator[None]:
    """The library's errors in our words; theirs may hold the URL, and so are not kept as causes."""
    try:
        yield
    except httpx2.ConnectTimeout:
        within_s = timeout_s * _CONNECT_SHARE
        raise TransientTransportError(f"no connection within {within_s:g} s") from None
    except (TimeoutError, httpx2.TimeoutException):
        raise TransientTransportError(f"no whole answer within {timeout_s:g} s") from None
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError):
        raise NeedsPersonError("the URL is none that a request can be sent to") from None
    except httpx2.ProxyError:
        raise TransientTransportError("the proxy did not let the request through") from None
    except httpx2.HTTPError as error:
        raise TransientTransportError(_why(error)) from None


def _why(error: BaseException) -> str:
    for cause in _causes(error):
        reason = _reason(cause)
        if reason is not None:
            return reason
    if isinstance(error, httpx2.ConnectError):
        return "no connection to the receiver"
    if isinstance(error, httpx2.RemoteProtocolError):
        return "the connection was closed before the answer was whole, or it is no HTTP"
    return "the connection was lost"


def _reason(cause: BaseException) -> str | None:
    match cause:
        case ssl.SSLCertVerificationError():
            said = cause.verify_message.partition(" for ")[0]  # a host's name may follow
            return f"the receiver's certificate is not trusted: {said}"
        case ssl.SSLError():
            return "no encrypted connection to the receiver could be made"
        case socket.gaierror():
            return "the receiver's name is not known here"
        case OSError(errno=int(number)):
            return _REASONS.get(number)
    return None


_REASONS = {
    errno.ECONNREFUSED: "the receiver refused the connection",
    errno.ECONNRESET: "the receiver reset the connection",
    errno.EPIPE: "the receiver closed the connection",
    errno.ENETUNREACH: "there is no way to the receiver's network",
    errno.EHOSTUNREACH: "there is no way to the receiver",
    errno.ETIMEDOUT: "the receiver did not answer the connection",
}


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    todo = [error]
    while todo:
        one = todo.pop(0)
        if one is None or one in seen:
            continue
        seen.append(one)
        yield one
        todo += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            todo += one.exceptions
