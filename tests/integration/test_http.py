"""Requests over real sockets: certificates, proxies, limits."""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.ports import HttpAnswer
from jobmond.transports.http import HttpClient
from tests.receiver import HANG, Receiver, Reply, status

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *map(str.upper, PROXIES), "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    made = HttpClient()
    yield made
    await made.close()


async def ask(client: HttpClient, url: str, **more: object) -> HttpAnswer:
    wanted = {"headers": {}, "timeout_s": 30.0, "max_bytes": 1000, **more}
    return await client.request(wanted.pop("method", "GET"), url, **wanted)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """One that nobody trusts, for 127.0.0.1; with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path = tmp_path / "receiver.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return path


def served_with(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def test_a_certificate_that_nobody_trusts(client: HttpClient, certificate: Path) -> None:
    async with Receiver(tls=served_with(certificate)) as receiver:
        with pytest.raises(TransientTransportError, match="certificate is not trusted: self"):
            await ask(client, receiver.url)
    assert receiver.requests == []


async def test_a_certificate_that_this_host_was_told_to_trust(
    client: HttpClient, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with Receiver(tls=served_with(certificate)) as receiver:
        assert (await ask(client, receiver.url)).status == 200


async def test_a_certificate_of_another_host(
    client: HttpClient, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with Receiver(tls=served_with(certificate)) as receiver:
        with pytest.raises(TransientTransportError) as caught:
            await ask(client, receiver.url.replace("127.0.0.1", "localhost"))
    assert "certificate is not trusted" in str(caught.value)
    assert "localhost" not in str(caught.value)


async def test_encryption_where_there_is_none(client: HttpClient) -> None:
    async with Receiver() as receiver:
        with pytest.raises(TransientTransportError, match=r"no connection within 0\.4 s"):
            await ask(client, receiver.url.replace("http:", "https:"), timeout_s=1.0)


async def test_the_proxy_of_the_environment(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Receiver() as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert (await ask(client, "http://receiver.invalid/hook")).status == 200
    assert proxy.requests[0].target == "http://receiver.invalid/hook"
    assert proxy.requests[0].headers["host"] == "receiver.invalid"


async def test_a_host_that_needs_no_proxy(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with Receiver() as receiver:
        assert (await ask(client, receiver.url)).status == 200


async def test_a_proxy_that_refuses(client: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Receiver([status(403)]) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:hunter2@127.0.0.1:{proxy.port}")
        with pytest.raises(TransientTransportError) as caught:
            await ask(client, "https://receiver.invalid/hook")
    assert str(caught.value) == "the proxy did not let the request through"


@pytest.mark.parametrize("proxy", ["hunter2://x", "http://[::1"])
async def test_a_proxy_that_is_none(
    client: HttpClient, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(NeedsPersonError, match="proxy settings of the environment") as caught:
        await ask(client, "http://receiver.invalid/hook")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "hunter2", "ftp://h/", "http://h:hunter2/", "http://h\x00/"])
async def test_a_url_that_is_none(client: HttpClient, url: str) -> None:
    with pytest.raises(NeedsPersonError) as caught:
        await ask(client, url)
    assert str(caught.value) == "the URL is none that a request can be sent to"
    assert caught.value.__cause__ is None


async def test_a_name_that_is_not_known(client: HttpClient) -> None:
    with pytest.raises(TransientTransportError, match="name is not known here"):
        await ask(client, "http://receiver.invalid/hook")


async def test_no_more_is_read_than_asked_for(client: HttpClient) -> None:
    async with Receiver([status(200, b"x" * 500_000, X_One="1"), status(500, b"abc")]) as receiver:
        long = await ask(client, receiver.url, max_bytes=1000)
        assert (long.status, long.body, long.headers["x-one"]) == (200, b"x" * 1000, "1")
        assert (await ask(client, receiver.url)).body == b"abc"


async def test_a_packed_answer_is_left_packed(client: HttpClient) -> None:
    async with Receiver([status(200, b"\x1f\x8b", Content_Encoding="gzip")]) as receiver:
        assert (await ask(client, receiver.url)).body == b"\x1f\x8b"
    assert receiver.requests[0].headers["accept-encoding"] == "identity"


async def test_drop_after_drop_is_out_of_time_too(client: HttpClient) -> None:
    dripping = Reply(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100, then="hang")
    async with Receiver([dripping]) as receiver:
        with pytest.raises(TransientTransportError, match=r"no whole answer within 0\.2 s"):
            await ask(client, receiver.url, timeout_s=0.2)
        assert (await ask(client, receiver.url)).status == 200


async def test_one_that_hangs_holds_up_no_other(client: HttpClient) -> None:
    async with Receiver([HANG]) as slow, Receiver() as quick:
        waiting = asyncio.create_task(ask(client, slow.url))
        await slow.arrived.wait()
        assert (await ask(client, quick.url)).status == 200
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


async def test_methods_bodies_and_headers(client: HttpClient) -> None:
    async with Receiver() as receiver:
        await ask(client, receiver.url, method="PUT", body=b"abc", headers={"x-a": "b"})
    sent = receiver.requests[0]
    assert (sent.body, sent.headers["x-a"]) == (b"abc", "b")


async def test_closing_twice_and_going_on(client: HttpClient) -> None:
    async with Receiver() as receiver:
        await ask(client, receiver.url)
        await client.close()
        await client.close()
        assert (await ask(client, receiver.url)).status == 200
