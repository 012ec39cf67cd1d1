"""News to a receiver elsewhere: one POST an event, signed as Standard Webhooks says.

Source: https://www.standardwebhooks.com (headers, signature, what a status means).
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit

from jobmond.analysis.outgoing import fitted, outgoing
from jobmond.errors import ConfigError, SinkRefusal, SinkRetry, TransportError
from jobmond.model.outcome import Delivery
from jobmond.ports import Clock, HttpAnswer, HttpApi
from jobmond.registry import sinks

_ANSWER_BYTES = 64 * 1024  # read so that the connection can be used again, then thrown away
_SECRET_FILE_BYTES = 64 * 1024
_LEAST_BYTES = 1024
_AGAIN = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
_PRINTABLE = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) != "%")


@sinks.plugin("webhook")
class WebhookSink:
    """Posts each event, and again with the same `webhook-id` until a 2xx says that it was taken.

    `url_file` holds the address, `secret_file` one secret a line (`whsec_` and base64; each signs,
    so that one can follow another): both are read anew for every request. An event larger than
    `max_bytes` has its `body` cut. `timeout` is for one request. What was not taken within
    `give_up_after`, and the oldest of more than `spool` that wait, is given up.
    """

    def __init__(
        self,
        http: HttpApi,
        clock: Clock,
        /,
        *,
        url_file: Path,
        format: Literal["generic"] = "generic",
        secret_file: Path | None = None,
        max_bytes: int = 64 * 1024,
        timeout: timedelta = timedelta(seconds=10),
        give_up_after: timedelta = timedelta(days=3),
        spool: int = 10_000,
    ) -> None:
        del format  # there is one so far; the type says so where the configuration is read
        for name, value, least in (
            ("max_bytes", max_bytes, _LEAST_BYTES),
            ("spool", spool, 1),
            ("timeout", timeout, timedelta(seconds=1)),
            ("give_up_after", give_up_after, timedelta(minutes=1)),
        ):
            if value < least:  # type: ignore[operator] # each is compared with its like
                raise ConfigError(f"{name}: must be at least {least}")
        self._http, self._clock = http, clock
        self._url_file, self._secret_file = url_file, secret_file
        self._max_bytes = max_bytes
        self._timeout_s = timeout.total_seconds()
        self.give_up_after = give_up_after
        self.spool = spool

    async def send(self, deliveries: Sequence[Delivery]) -> None:
        """Post one after the other; what comes after a failure is not tried.

        Raises:
            SinkRetry: 408, 429, 5xx, no whole answer, or the files cannot be used as they are.
            SinkRefusal: any other status, redirects among them; or the event is no JSON.
        """
        for delivery in deliveries:
            await self._post(delivery)

    async def check(self) -> None:
        """Raises SinkRetry where the files cannot be used; sends nothing."""
        await asyncio.to_thread(self._address)
        await asyncio.to_thread(self._secrets)

    async def _post(self, delivery: Delivery) -> None:
        try:
            body = fitted(outgoing(delivery.body, key=delivery.key), self._max_bytes)
        except (TypeError, ValueError) as error:
            raise SinkRefusal(f"event {delivery.key} is not JSON: {error}") from error
        url = await asyncio.to_thread(self._address)
        secrets = await asyncio.to_thread(self._secrets)
        now = self._clock.now()
        try:
            answer = await self._http.request(
                "POST",
                url,
                headers=_headers(delivery.key, now, body, secrets),
                body=body,
                timeout_s=self._timeout_s,
                max_bytes=_ANSWER_BYTES,
            )
        except TransportError as error:
            raise SinkRetry(f"{error} (address in {self._url_file})") from error
        _judge(answer, now, self._url_file)

    def _address(self) -> str:
        url = _read(self._url_file).strip()
        try:
            parts = urlsplit(url)
            good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            good = False
        if not good or not url.isprintable() or " " in url:
            raise SinkRetry(f"{self._url_file}: expected one line that begins with https://")
        return url

    def _secrets(self) -> list[bytes]:
        if self._secret_file is None:
            return []
        lines = [line.strip() for line in _read(self._secret_file).splitlines()]
        try:
            found = [
                base64.b64decode(line.removeprefix("whsec_"), validate=True)
                for line in lines
                if line
            ]
        except (binascii.Error, ValueError):
            found = []
        if not found or not all(found):
            raise SinkRetry(f"{self._secret_file}: expected whsec_ and base64, one secret a line")
        return found


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_SECRET_FILE_BYTES).decode("utf-8")
    except OSError as error:
        raise SinkRetry(f"{path}: {error.strerror or 'cannot be read'}") from error
    except UnicodeDecodeError:
        raise SinkRetry(f"{path}: not UTF-8") from None  # its message would show what it read


def _headers(key: str, now: datetime, body: bytes, secrets: Sequence[bytes]) -> Mapping[str, str]:
    number = quote(key, safe=_PRINTABLE)
    stamp = str(int(now.timestamp()))
    headers = {
        "content-type": "application/json",
        "webhook-id": number,
        "webhook-timestamp": stamp,
    }
    if secrets:
        signed = f"{number}.{stamp}.".encode("ascii") + body
        made = (hmac.new(secret, signed, hashlib.sha256).digest() for secret in secrets)
        headers["webhook-signature"] = " ".join(
            f"v1,{base64.b64encode(one).decode('ascii')}" for one in made
        )
    return headers


def _judge(answer: HttpAnswer, now: datetime, url_file: Path) -> None:
    status = answer.status
    if 200 <= status < 300:
        return
    said = f"the receiver answered {status}{_phrase(status)}"
    if status in _AGAIN or status >= 500:
        raise SinkRetry(said, after_s=_asked_s(answer.headers, now))
    if 300 <= status < 400:
        said += f"; redirects are not followed, write the final address into {url_file}"
    raise SinkRefusal(said)


def _phrase(status: int) -> str:
    try:
        return f" {HTTPStatus(status).phrase}"
    except ValueError:
        return ""


def _asked_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """Retry-After in seconds; a date counts from the receiver's own, whose clock may be wrong."""
    asked = headers.get("retry-after", "").strip()
    if re.fullmatch(r"[0-9]{1,10}", asked):
        return float(asked)
    until = _date(asked)
    if until is None:
        return None
    return max(0.0, (until - (_date(headers.get("date", "")) or now)).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
