import os
import socket
import threading
from pathlib import Path

import pytest

from jobmond.cli.wire import Daemon, DaemonRefusal
from jobmond.errors import DaemonUnreachable

ME = os.geteuid()


@pytest.fixture
def ask(tmp_path):
    def make(*candidates, uid=ME, gids=()):
        return Daemon(candidates or (tmp_path / "socket",), uid=uid, gids=gids)

    return make


def test_the_first_that_answers_is_taken(fake, ask, tmp_path):
    dead = tmp_path / "dead"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(dead))
    fake.on("GET /v1/health", {"pid": 7})
    missing = tmp_path / "missing" / "socket"
    assert ask(missing, dead, fake.socket).get("/v1/health") == {"pid": 7}


def test_none_of_query_and_body_travels(fake, ask):
    fake.on("POST /v1/sweeps", {"clusters": []})
    ask().ask("POST", "/v1/sweeps", query={"a": None, "b": "x y&z"}, body={"c": None, "d": 0})
    assert fake.asked == [("POST /v1/sweeps", {"b": "x y&z"}, {"d": 0})]


def test_a_refusal_keeps_its_message_and_code(fake, ask):
    fake.on("GET /v1/job", (404, {"error": "unknown job 'x'", "exit_code": 1}))
    with pytest.raises(DaemonRefusal, match="unknown job 'x'") as refused:
        ask().get("/v1/job", {"job": "x"})
    assert refused.value.exit_code == 1
    fake.on("GET /v1/job", (500, {"error": "no", "exit_code": 77}))
    with pytest.raises(DaemonRefusal) as refused:
        ask().get("/v1/job", {"job": "x"})
    assert refused.value.exit_code == 1


@pytest.mark.parametrize("raw", [b"<html>", b"[]", b"\xff\xfe"])
def test_what_is_no_jobmond_is_no_daemon(fake, ask, raw):
    fake.on("GET /v1/status", (200, raw))
    with pytest.raises(DaemonUnreachable, match="is no jobmond"):
        ask().get("/v1/status")


def serve_once(path: Path, reply: bytes | None):
    """A listener that hangs up after `reply`; None: one that never answers."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(1)

    def serve():
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            if reply is None:
                connection.recv(1)  # until the client hangs up
            else:
                connection.sendall(reply)

    threading.Thread(target=serve, daemon=True).start()
    return server


def test_no_answer_in_time(ask, tmp_path):
    with (
        serve_once(tmp_path / "socket", None),
        pytest.raises(DaemonUnreachable, match="gave no answer in 0 s"),
    ):
        ask().get("/v1/status", timeout_s=0.05)


@pytest.mark.parametrize(
    "reply", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", b"x\r\n"]
)
def test_hanging_up_is_no_answer(ask, tmp_path, reply):
    with serve_once(tmp_path / "socket", reply), pytest.raises(DaemonUnreachable, match="hung up"):
        ask().get("/v1/status")


def test_a_file_is_no_socket(ask, tmp_path):
    (tmp_path / "socket").write_text("")
    with pytest.raises(DaemonUnreachable, match="is no socket"):
        ask().get("/v1/status")


def test_a_path_that_is_too_long_is_said(ask, tmp_path):
    long = tmp_path / ("x" * 120)
    with pytest.raises(DaemonUnreachable, match="no socket at"):
        ask(long).get("/v1/status")


@pytest.fixture
def foreign(fake):
    """The double's socket as one of neither ours nor root's."""
    if ME == 0:
        os.chown(fake.socket, 4242, -1)
    return fake.socket


def test_another_user_s_socket_is_not_talked_to(fake, ask, foreign):
    foreign.chmod(0o600)
    with pytest.raises(DaemonUnreachable, match=r"belongs to .+ and is not open to you") as said:
        ask(uid=ME + 1).get("/v1/health")
    assert "\n" not in str(said.value)
    assert fake.asked == []


def test_a_socket_opened_to_our_group_is(fake, ask, foreign):
    fake.on("GET /v1/health", {})
    foreign.chmod(0o660)
    gid = foreign.stat().st_gid
    assert ask(uid=ME + 1, gids=(gid,)).get("/v1/health") == {}
    with pytest.raises(DaemonUnreachable, match="belongs to"):
        ask(uid=ME + 1, gids=(gid + 1,)).get("/v1/health")


def test_a_socket_open_to_everybody_may_be_an_impostor(ask, foreign):
    foreign.chmod(0o666)
    with pytest.raises(DaemonUnreachable, match="belongs to"):
        ask(uid=ME + 1, gids=(foreign.stat().st_gid,)).get("/v1/health")


@pytest.mark.skipif(ME != 0, reason="only root can give folders away")
@pytest.mark.parametrize(
    ("given", "taken"),
    [((4242, 0o755), True), ((4243, 0o755), False), ((0, 0o755), False), ((4242, 0o777), False)],
)
def test_root_talks_to_a_daemon_in_the_folder_root_gave_it(fake, ask, tmp_path, given, taken):
    """As systemd does for a service with a user of its own."""
    owner, above = given
    fake.on("GET /v1/health", {"pid": 7})
    run = tmp_path / "run"
    folder = run / "jobmond"
    folder.mkdir(parents=True)
    run.chmod(above)
    moved = fake.socket.rename(folder / "socket")
    os.chown(moved, 4242, 4242)
    moved.chmod(0o600)
    os.chown(folder, owner, owner)
    if taken:
        assert ask(moved).get("/v1/health") == {"pid": 7}
    else:
        with pytest.raises(DaemonUnreachable, match="not open to you"):
            ask(moved).get("/v1/health")
