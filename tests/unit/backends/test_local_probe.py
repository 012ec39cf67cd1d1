"""The answer of the script: taken whole or not at all."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.backends.local import LocalBackend
from jobmond.backends.local.probe import Asked, Unreadable, read, script
from jobmond.errors import NeedsPersonError, TransientTransportError
from jobmond.model.observation import Ask, Gone, Poll, Seen, Unreachable
from jobmond.model.state import State
from jobmond.ports import Answer

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
MARK = b"=jobmond=" + b"0" * 32
HOST = b"b007\n100\n1795946400\nn1\nalice\n1000\n"
STAT = b"4711 (a) b ((x)) S 1 4711 4711 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 360000 " + b"0 " * 30


def answer(*frames: tuple[bytes, bytes], code: int = 0) -> Answer:
    body = b"".join(b"\n" + MARK + b" " + head + b"\n" + content for head, content in frames)
    return Answer(code, b"banner" + body, b"sh: x\nwhat went wrong\n")


WHOLE = (
    (b"- host", HOST),
    (b"4711 stat", STAT),
    (b"4711 user", b"alice\n"),
    (b"4711 workdir", b"/home/alice/a\nb\n"),
    (b"4711 out", b""),
    (b"4711 command", b"python\0-c\0print(1)\0--api-key\0abc\0"),
    (b"12 gone", b"sh: 20: kill: No such process\n"),
    (b"13 gone", b"sh: 20: kill: Operation not permitted\n"),
    (b"14 gone", b""),
    (b"12 record", b'{"birth": "b007:1", "exit_code": 3, "command": ["a b"], "pid": 12}'),
    (b"12 record", b'{"birth": "b0'),
    (b"12 record", b"[]"),
    (b"12 log_path", b"/x"),
    (b"12 log_stat", b"5 alice\n"),
    (b"12 log", b"\0\xff\nx\n"),
    (b"- end", b""),
)


def test_an_answer_is_read() -> None:
    host, processes = read(answer(*WHOLE))
    assert (host.boot_id, host.ticks_per_s, host.name, host.root) == ("b007", 100, "n1", False)
    assert host.booted_at == datetime(2026, 11, 29, 10, 0, tzinfo=UTC)
    alive = processes[4711]
    assert alive.stat is not None
    assert (alive.stat.program, alive.stat.state) == ("a) b ((x)", "S")
    assert alive.stat.start_ticks == 360_000
    assert alive.user == "alice"
    assert alive.workdir == "/home/alice/a\\nb"
    assert alive.out is None
    assert alive.command == "python -c 'print(1)' --api-key ****"
    dead = processes[12]
    assert dead.stat is None
    assert dead.hidden is None
    assert [(r.birth, r.exit_code, r.command) for r in dead.records] == [("b007:1", 3, "'a b'")]
    assert dead.complaints == ("the record of pid-12 cannot be read and is left out",) * 2
    assert dead.log is not None
    assert (dead.log.path, dead.log.size_bytes, dead.log.tail) == ("/x", 5, b"\0\xff\nx\n")
    assert processes[13].hidden == "it cannot be looked at: Operation not permitted"
    assert processes[14].hidden == "it lives, but /proc does not show it"


@given(st.integers(0, len(answer(*WHOLE).stdout) - 1))
def test_an_answer_cut_short_is_no_answer(length: int) -> None:
    cut = Answer(0, answer(*WHOLE).stdout[:length], b"")
    if length < len(answer(*WHOLE).stdout) - 1:
        with pytest.raises(Unreadable):
            read(cut)


@pytest.mark.parametrize("stdout", [b"", b"hello", b"\n=jobmond=", answer((b"- end", b"")).stdout])
def test_something_else_is_no_answer(stdout: bytes) -> None:
    with pytest.raises(Unreadable):
        read(Answer(0, stdout, b""))


def test_a_script_that_failed_is_no_answer() -> None:
    with pytest.raises(Unreadable, match=r"looking at /proc failed \(3\): what went wrong"):
        read(answer(*WHOLE, code=3))


def test_paths_are_quoted() -> None:
    text = script([Asked(7, "/a'b $(x)", awaited=True)], runs="/r s/$(y)", patience_s=1)
    assert b"log 7 '/a'\"'\"'b $(x)'" in text
    assert b"runs='/r s/$(y)'" in text


class Told:
    """A transport that answers what it was told to."""

    logins = 0

    def __init__(self, said: Answer | Exception) -> None:
        self.said = said
        self.scripts: list[bytes] = []

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        self.scripts.append(script)
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    async def close(self) -> None: ...


async def polled(told: Told, *asks: Ask) -> Poll:
    return await LocalBackend(told, runs="/state/runs").poll(asks, since=NOW, now=NOW, timeout_s=10)


def ask(native: str, birth: str | None = None, **more: object) -> Ask:
    return Ask(native, birth, **({"added_at": NOW} | more))  # type: ignore[arg-type] # keywords of the test's own


async def test_one_script_answers_for_all() -> None:
    told = Told(answer(*WHOLE))
    poll = await polled(
        told, ask("pid-4711"), ask("pid-12", "b007:1"), ask("pid-13", "b007:7"), ask("pid-99")
    )
    assert len(told.scripts) == 1
    by_type: Mapping[str, type] = {native: type(s) for native, s in poll.sightings.items()}
    assert by_type == {
        "pid-4711": Seen,
        "pid-12": Seen,
        "pid-13": Unreachable,
        "pid-99": Unreachable,
    }
    assert poll.trouble is None
    assert poll.calls == {"proc": 1}
    assert len(poll.complaints) == 2


async def test_nothing_asked_runs_nothing() -> None:
    told = Told(answer(*WHOLE))
    assert await polled(told) == Poll({})
    assert told.scripts == []


async def test_an_id_of_another_form_never_gets_into_the_script() -> None:
    told = Told(answer(*WHOLE))
    poll = await polled(told, ask("pid-4711"), ask("pid-1;reboot"), ask("4711\n"))
    assert isinstance(poll.sightings["pid-1;reboot"], Unreachable)
    assert isinstance(poll.sightings["4711\n"], Unreachable)
    assert b"reboot" not in told.scripts[0]


@pytest.mark.parametrize("native", ["pid-1", "pid-4711", "pid-4194304"])
def test_valid_ids(native: str) -> None:
    assert LocalBackend(Told(answer()), runs="/x").valid_id(native) is None


@pytest.mark.parametrize(
    "native",
    [
        "4711",
        "pid-",
        "pid-0",
        "pid-01",
        "pid--1",
        "pid-1 ",
        "pid-1\n",
        "pid-1٣",
        "PID-1",
        "pid-12345678",
    ],
)
def test_invalid_ids(native: str) -> None:
    said = LocalBackend(Told(answer()), runs="/x").valid_id(native)
    assert said is not None
    assert "\n" not in said


@pytest.mark.parametrize(
    ("failure", "needs_login", "remedy"),
    [
        (TransientTransportError("cut"), False, None),
        (NeedsPersonError("no", remedy="do it"), True, "do it"),
    ],
)
async def test_no_answer_moves_no_job(
    failure: Exception, needs_login: bool, remedy: str | None
) -> None:
    poll = await polled(Told(failure), ask("pid-4711"), ask("pid-12"))
    assert poll.sightings == {
        "pid-4711": Unreachable(str(failure)),
        "pid-12": Unreachable(str(failure)),
    }
    assert (poll.trouble, poll.needs_login, poll.remedy) == (str(failure), needs_login, remedy)


async def test_half_an_answer_moves_no_job() -> None:
    poll = await polled(Told(answer(*WHOLE[:-1])), ask("pid-12", "b007:1"))
    assert isinstance(poll.sightings["pid-12"], Unreachable)
    assert poll.trouble == "looking at /proc gave no whole answer"


async def test_of_two_incarnations_the_one_that_is_not_over_is_asked_about() -> None:
    lost = ask("pid-12", "b007:999", state=State.LOST)
    running = ask("pid-12", "b007:1", state=State.RUNNING)
    for order in ((lost, running), (running, lost)):
        poll = await polled(Told(answer(*WHOLE)), *order)
        assert isinstance(poll.sightings["pid-12"], Seen)
    assert isinstance((await polled(Told(answer(*WHOLE)), lost)).sightings["pid-12"], Gone)
