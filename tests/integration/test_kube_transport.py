"""The client of a Kubernetes API server against a scripted one, over real HTTP."""

import asyncio
import base64
import ipaddress
import json
import os
import ssl
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from jobmond.clock import SystemClock
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.transports.kube import KubeClient
from tests import kube
from tests.unit.builders import NOW


@pytest.fixture(autouse=True)
def straight(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


JOBS = "/apis/batch/v1/namespaces/ml/jobs"
PATIENCE_S = 20.0


class Calendar:
    """A clock that a test sets; durations are real."""

    def __init__(self):
        self.at = NOW
        self._real = SystemClock()
        self.ahead_s = 0.0

    def now(self):
        return self.at

    def monotonic(self):
        return self._real.monotonic() + self.ahead_s

    def later(self, **by):
        self.at += timedelta(**by)
        self.ahead_s += timedelta(**by).total_seconds()


@pytest.fixture
async def server():
    async with kube.api_server() as made:
        yield made


@pytest.fixture
async def client(server, tmp_path):
    made = KubeClient(clock=Calendar(), kubeconfig=kube.kubeconfig(tmp_path, server.url), env={})
    yield made
    await made.close()


async def get(client, path=JOBS, *, timeout_s=PATIENCE_S, max_bytes=1_000_000, **query):
    return await client.get(path, query, timeout_s=timeout_s, max_bytes=max_bytes)


def once(*answers):
    """A fault that gives these answers in turn, and then none."""
    left = list(answers)

    async def fault(request):
        return left.pop(0) if left else None

    return fault


def text(status, body=b"", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(status=status, body=body, headers={**kube.TEXT, **named})


async def test_an_answer_comes_whole_with_the_token(server, client):
    server.state.put("jobs", kube.job())
    answer = await get(client, limit="500")
    assert answer.status == 200
    assert [j["metadata"]["name"] for j in json.loads(answer.body)["items"]] == ["train"]
    assert server.requests[0].headers["Authorization"] == "Bearer secret-token"
    assert server.requests[0].query_string == "limit=500"
    assert client.logins == 1


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 422, 500, 502, 503, 504])
async def test_other_statuses_are_answers(server, client, status):
    server.fault = once(text(status, b"<html>no</html>"))
    answer = await get(client)
    assert (answer.status, answer.body) == (status, b"<html>no</html>")
    assert len(server.requests) == 1


async def test_throttling_is_waited_out_as_asked(server, client):
    busy = [text(429, b"Too many requests\n", Retry_After="0") for _ in range(2)]
    server.fault = once(*busy, text(503, b"", Retry_After="0"))
    assert (await get(client)).status == 200
    assert len(server.requests) == 4


async def test_throttling_to_the_end_is_no_answer(server, client):
    server.fault = once(*[text(429, b"", Retry_After="0") for _ in range(9)])
    with pytest.raises(TransientTransportError, match="throttles"):
        await get(client)
    assert len(server.requests) == 4


async def test_a_wait_that_is_longer_than_there_is_time_is_not_begun(server, client):
    server.fault = once(text(429, b"", Retry_After="3600"))
    with pytest.raises(TransientTransportError, match="left alone for 3600 s"):
        await get(client)
    assert len(server.requests) == 1


async def test_refused_credentials_are_loaded_once_more_and_then_a_persons_turn(server, tmp_path):
    clock = Calendar()
    path = kube.kubeconfig(tmp_path, server.url)
    client = KubeClient(clock=clock, kubeconfig=path, context="lab", env={})
    server.token = "another"
    with pytest.raises(NeedsPersonError, match="refuses the credentials") as refused:
        await get(client)
    assert refused.value.remedy == f"kubectl --kubeconfig {path} --context lab get jobs"
    assert (len(server.requests), client.logins) == (2, 2)
    assert not await client.acted()
    clock.later(minutes=59)
    assert not await client.acted()
    clock.later(minutes=2)
    assert await client.acted()
    await client.close()


async def test_somebody_who_writes_the_kubeconfig_has_acted(server, tmp_path):
    path = kube.kubeconfig(tmp_path, server.url)
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={})
    server.token = "fresh"
    with pytest.raises(NeedsPersonError):
        await get(client)
    kube.kubeconfig(tmp_path, server.url, user={"token": "fresh"})
    os.utime(path, ns=(1, 1))
    assert await client.acted()
    client.retry_login()
    assert (await get(client)).status == 200
    await client.close()


async def test_a_file_of_the_credentials_that_changes_is_read_again(server, tmp_path):
    clock = Calendar()
    token = tmp_path / "token"
    token.write_text("one")
    path = kube.kubeconfig(tmp_path, server.url, user={"tokenFile": "token"})
    client = KubeClient(clock=clock, kubeconfig=path, env={})
    await get(client)
    token.write_text("two")
    os.utime(token, ns=(1, 1))
    clock.later(seconds=31)
    await get(client)
    sent = [request.headers["Authorization"] for request in server.requests]
    assert sent == ["Bearer one", "Bearer two"]
    await client.close()


async def test_reset(server, client):
    async def reset(request):
        request.transport.abort()
        return web.Response()

    server.fault = reset
    with pytest.raises(TransientTransportError, match=r"closed the connection|no answer"):
        await get(client)


async def test_cut_short(server, client):
    async def cut(request):
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b'{"items": [')
        request.transport.abort()
        return response

    server.fault = cut
    with pytest.raises(TransientTransportError, match="cut short"):
        await get(client)


async def test_a_hang_ends_when_the_time_is_up(server, client):
    over = asyncio.Event()

    async def hang(request):
        await over.wait()

    server.fault = hang
    with pytest.raises(TransientTransportError, match=r"no whole answer within 0\.3 s"):
        await get(client, timeout_s=0.3)
    over.set()


async def test_a_drip_ends_when_the_time_is_up(server, client):
    async def drip(request):
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.02)

    server.fault = drip
    with pytest.raises(TransientTransportError, match=r"no whole answer within 0\.3 s"):
        await get(client, timeout_s=0.3)


async def test_nobody_there(tmp_path):
    path = kube.kubeconfig(tmp_path, "http://127.0.0.1:1")
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={})
    with pytest.raises(TransientTransportError, match=r"127\.0\.0\.1:1: .*refused"):
        await get(client)
    await client.close()


async def test_http_where_https_is_spoken(server, tmp_path):
    path = kube.kubeconfig(tmp_path, server.url.replace("http://", "https://"))
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={})
    with pytest.raises(TransientTransportError, match="no connection to the API server"):
        await get(client)
    await client.close()


async def test_too_much_is_no_answer(server, client):
    server.fault = once(text(200, b"x" * 1001), text(200, b"x" * 1000))
    with pytest.raises(TransientTransportError, match="more than 1000 bytes"):
        await get(client, max_bytes=1000)
    assert len((await get(client, max_bytes=1000)).body) == 1000


async def test_a_redirect_is_not_followed(server, client):
    server.fault = once(web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}))
    assert (await get(client)).status == 302


async def test_one_call_after_another(server, client):
    await asyncio.gather(*(get(client) for _ in range(8)))
    assert (len(server.requests), server.most_at_once) == (8, 1)


async def test_the_namespace_is_that_of_the_context(server, tmp_path):
    path = kube.kubeconfig(tmp_path, server.url, namespace="team")
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={})
    assert await client.namespace(timeout_s=PATIENCE_S) == "team"
    assert server.requests == []
    await client.close()


async def test_the_environment_names_the_kubeconfig(server, tmp_path):
    path = kube.kubeconfig(tmp_path, server.url)
    client = KubeClient(clock=Calendar(), env={"KUBECONFIG": f"/nowhere:{path}"})
    assert (await get(client)).status == 200
    await client.close()


def plugin(folder, body):
    path = folder / "plugin"
    path.write_text(f"#!{sys.executable}\n{body}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"command": "./plugin", "apiVersion": version, "env": None, "args": ["a"]}}


SAYS_TOKEN = """
import json, os, sys
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
count = len(open(sys.argv[0] + ".runs", "a+").write("x") and open(sys.argv[0] + ".runs").read())
assert info["kind"] == "ExecCredential" and info["spec"] == {"interactive": False}
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status":
    {"token": "t%d" % count, "expirationTimestamp": "2026-11-29T13:00:00Z"}}))
"""


async def test_a_credential_plugin_is_asked_again_when_its_token_expires(server, tmp_path):
    clock = Calendar()  # noon
    path = kube.kubeconfig(tmp_path, server.url, user=plugin(tmp_path, SAYS_TOKEN))
    client = KubeClient(clock=clock, kubeconfig=path, env={"PATH": os.environ["PATH"]})
    await get(client)
    await get(client)
    clock.later(minutes=59, seconds=30)
    await get(client)
    sent = [request.headers["Authorization"] for request in server.requests]
    assert sent[0] == sent[1] != sent[2]
    assert client.logins == 2
    await client.close()


async def test_a_credential_plugin_that_fails_says_why(server, tmp_path):
    body = "import sys; sys.exit('the SSO session has expired: aws sso login')"
    path = kube.kubeconfig(tmp_path, server.url, user=plugin(tmp_path, body))
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={"PATH": os.environ["PATH"]})
    with pytest.raises(TransientTransportError, match="session has expired: aws sso login"):
        await get(client)


async def test_a_credential_plugin_that_hangs_is_ended_with_its_children(server, tmp_path):
    mark = f"jm-{os.getpid()}-{tmp_path.name}"
    body = f"import subprocess; subprocess.run(['sh', '-c', 'sleep 600; : {mark}'])"
    path = kube.kubeconfig(tmp_path, server.url, user=plugin(tmp_path, body))
    client = KubeClient(
        clock=Calendar(),
        kubeconfig=path,
        env={"PATH": os.environ["PATH"]},
        exec_timeout_s=1.0,
    )
    with pytest.raises(TransientTransportError, match="said nothing within 1 s"):
        await get(client)
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    assert mark not in left.stdout


@pytest.mark.parametrize("said", ["", "[]", '{"status": {}}', '{"status": 3}', "no JSON"])
async def test_a_credential_plugin_that_says_nonsense(server, tmp_path, said):
    path = kube.kubeconfig(tmp_path, server.url, user=plugin(tmp_path, f"print({said!r})"))
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={"PATH": os.environ["PATH"]})
    with pytest.raises(NeedsPersonError, match="is no credential"):
        await get(client)


async def test_a_credential_plugin_that_is_not_there(server, tmp_path):
    user = {"exec": {"command": "no-such-plugin", "apiVersion": "v1", "installHint": "get it"}}
    path = kube.kubeconfig(tmp_path, server.url, user=user)
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={"PATH": os.environ["PATH"]})
    with pytest.raises(NeedsPersonError, match="no-such-plugin cannot be started") as missing:
        await get(client)
    assert missing.value.remedy == "get it"


@pytest.mark.parametrize(
    "config",
    [
        "",
        "[]",
        "a: [",
        "x: \udc80".encode("utf-8", "surrogateescape"),
        "clusters: []\ncontexts: []\nusers: []\ncurrent-context: lab",
        "clusters: 3",
        "current-context: a\ncontexts: [{name: a, context: {cluster: b, user: c}}]\nclusters: []",
    ],
)
async def test_a_kubeconfig_that_is_none(tmp_path, config):
    path = tmp_path / "kubeconfig"
    path.write_bytes(config if isinstance(config, bytes) else config.encode())
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={})
    with pytest.raises(NeedsPersonError, match="kubeconfig cannot be used"):
        await get(client)


async def test_no_kubeconfig_at_all(tmp_path):
    client = KubeClient(clock=Calendar(), env={"HOME": str(tmp_path)})
    with pytest.raises(NeedsPersonError, match="config is not there"):
        await get(client)


async def test_a_context_that_is_not_there(server, tmp_path):
    path = kube.kubeconfig(tmp_path, server.url)
    client = KubeClient(clock=Calendar(), kubeconfig=path, context="moon", env={})
    with pytest.raises(NeedsPersonError, match="moon"):
        await get(client)


# ---- over TLS --------------------------------------------------------------------------------


@pytest.fixture
async def secure(tmp_path):
    """A server whose certificate, for the name `kubernetes` and 127.0.0.1, nobody knows."""
    authority = certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    async with kube.api_server(tls=context) as made:
        made.authority = authority
        yield made


def certificate(folder):
    """Write `server.pem` and `server.key`; their PEM signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    names = [x509.DNSName("kubernetes"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2090, 1, 1, tzinfo=UTC))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(SIGNS, critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (folder / "server.pem").write_bytes(pem)
    (folder / "server.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem


SIGNS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


async def test_a_certificate_that_nobody_knows_is_no_answer(secure, tmp_path):
    path = kube.kubeconfig(tmp_path, secure.url)
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={})
    with pytest.raises(TransientTransportError, match="certificate is not trusted"):
        await get(client)
    assert secure.requests == []
    await client.close()


@pytest.mark.parametrize(
    "cluster",
    [
        lambda pem: {"certificate-authority-data": base64.b64encode(pem).decode()},
        lambda pem: {"certificate-authority": "server.pem", "tls-server-name": "kubernetes"},
        lambda pem: {"insecure-skip-tls-verify": True},
    ],
    ids=["data", "file", "no check"],
)
async def test_a_certificate_that_the_kubeconfig_vouches_for(secure, tmp_path, cluster):
    path = kube.kubeconfig(tmp_path, secure.url, cluster=cluster(secure.authority))
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={})
    assert (await get(client)).status == 200
    await client.close()


async def test_a_pod_asks_with_its_own_account_and_takes_its_new_token(secure, tmp_path):
    clock = Calendar()
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text("first")
    (account / "ca.crt").write_bytes(secure.authority)
    (account / "namespace").write_text("team\n")
    host, _, port = secure.url.removeprefix("https://").partition(":")
    env = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "HOME": "/nowhere"}
    client = KubeClient(clock=clock, env=env, account=account)
    assert await client.namespace(timeout_s=PATIENCE_S) == "team"
    await get(client)
    (account / "token").write_text("second")
    os.utime(account / "token", ns=(1, 1))
    clock.later(seconds=31)
    await get(client)
    sent = [request.headers["Authorization"] for request in secure.requests]
    assert sent == ["Bearer first", "Bearer second"]
    await client.close()


def test_the_library_is_loaded_where_a_cluster_is_asked_and_nowhere_else():
    """It costs seconds and a hundred megabytes."""
    code = (
        "import sys, jobmond.__main__, jobmond.cli.main, jobmond.app, jobmond.daemon.daemon,"
        " jobmond.daemon.check, jobmond.transports.kube, jobmond.backends.kubernetes\n"
        "print([m for m in ('kubernetes_asyncio', 'aiohttp') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def switched(path, url, name="other"):
    """`kubectl config use-context`: another cluster is the current one."""
    held = json.loads(path.read_text())
    held["current-context"] = name
    held["contexts"].append({"name": name, "context": {"cluster": name, "user": "me"}})
    held["clusters"].append({"name": name, "cluster": {"server": url}})
    path.write_text(json.dumps(held))


async def test_another_current_context_is_not_another_cluster(server, tmp_path):
    """The jobs of one would be missed in the other, and all called lost."""
    server.state.put("jobs", kube.job())
    path, pin = kube.kubeconfig(tmp_path, server.url), tmp_path / "state" / "kube-lab.context"
    clock = Calendar()
    options = {"clock": clock, "kubeconfig": path, "env": {}, "pin": pin}
    async with kube.api_server() as another:
        first = KubeClient(**options)
        assert (await get(first)).status == 200
        switched(path, another.url)
        clock.later(minutes=5)
        assert b"train" in (await get(first)).body
        await first.close()
        again = KubeClient(**options)  # after a restart
        assert b"train" in (await get(again)).body
        await again.close()
        assert another.requests == []
        named = KubeClient(**options, context="other")
        assert b"train" not in (await get(named)).body
        await named.close()


async def test_a_context_that_is_gone_is_for_a_person(server, tmp_path):
    path, pin = kube.kubeconfig(tmp_path, server.url), tmp_path / "kube-lab.context"
    pin.write_text(json.dumps({"kubeconfig": str(path), "context": "old"}))
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={}, pin=pin)
    with pytest.raises(NeedsPersonError, match="no context 'old' any more"):
        await get(client)
    await client.close()


@pytest.mark.parametrize("noted", ["", "[]", "{", '{"context": 7}', '{"context": "old"}'])
async def test_a_note_about_something_else_is_none(server, tmp_path, noted):
    path, pin = kube.kubeconfig(tmp_path, server.url), tmp_path / "kube-lab.context"
    pin.write_text(noted)
    client = KubeClient(clock=Calendar(), kubeconfig=path, env={}, pin=pin)
    assert (await get(client)).status == 200
    await client.close()
    assert json.loads(pin.read_text())["context"] == "lab"
