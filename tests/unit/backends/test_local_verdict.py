"""What is said of a process, from every combination of what can be seen of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from jobmond.backends.local.probe import Host, Log, Process, Record, Stat
from jobmond.backends.local.verdict import sighting
from jobmond.model.observation import Ask, Facts, Gone, Seen, Unreachable
from jobmond.model.state import State

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
HOST = Host("b007", 100, datetime(2026, 11, 29, 10, 0, tzinfo=UTC), "n1", "alice", root=False)
ALIVE = Stat("python", "S", 360_000, 0)
BIRTH = "b007:360000"
KNOWN = Facts(
    name="train",
    user="alice",
    started_at=datetime(2026, 11, 29, 11, 0, tzinfo=UTC),
    log_path="/home/alice/train.log",
    suspended=True,
)
ASK = Ask("pid-4711", BIRTH, added_at=NOW, state=State.RUNNING, facts=KNOWN)
OPEN = Record(
    BIRTH,
    name="named",
    command="python train.py",
    log="/state/4711.log",
    workdir="/home/alice",
    user="alice",
    started_at=datetime(2026, 11, 29, 11, 0, 0, 500_000, tzinfo=UTC),
)
ENDED_AT = datetime(2026, 11, 29, 11, 30, tzinfo=UTC)
TRACEBACK = (
    b'Traceback (most recent call last):\n  File "t.py", line 1, in <module>\nValueError: x\n'
)


def closed(code: int | None, signal: int | None = None) -> Record:
    return replace(OPEN, exit_code=code, signal=signal, ended_at=ENDED_AT)


def a_log(tail: bytes, owner: str = "alice") -> Log:
    return Log("/home/alice/train.log", len(tail), owner, tail)


def seen(process: Process, ask: Ask = ASK, host: Host = HOST) -> Seen:
    found = sighting(ask, process, host, now=NOW)
    assert isinstance(found, Seen), found
    return found


def gone(process: Process, ask: Ask = ASK) -> str:
    found = sighting(ask, process, HOST, now=NOW)
    assert isinstance(found, Gone), found
    assert found.complete
    return found.reason


def test_a_live_process_runs() -> None:
    process = Process(
        stat=ALIVE,
        user="alice",
        workdir="/home/alice",
        out="/home/alice/train.log",
        err="/home/alice/train.err",
        command="python train.py",
    )
    found = seen(process)
    assert (found.state, found.native, found.birth, found.proof) == (
        State.RUNNING,
        "running",
        BIRTH,
        "/proc",
    )
    assert found.facts == Facts(
        name="python",
        user="alice",
        workdir="/home/alice",
        command="python train.py",
        submitted_at=datetime(2026, 11, 29, 11, 0, tzinfo=UTC),
        started_at=datetime(2026, 11, 29, 11, 0, tzinfo=UTC),
        elapsed_s=3600,
        nodes="n1",
        log_path="/home/alice/train.log",
        err_path="/home/alice/train.err",
    )


@pytest.mark.parametrize("letter", ["R", "S", "D", "I", "P"])
def test_what_a_live_process_waits_for_is_no_news(letter: str) -> None:
    assert seen(Process(stat=replace(ALIVE, state=letter))).native == "running"


@pytest.mark.parametrize("letter", ["T", "t"])
def test_a_stopped_process_runs_suspended(letter: str) -> None:
    found = seen(Process(stat=replace(ALIVE, state=letter)))
    assert (found.state, found.native, found.facts.suspended) == (State.RUNNING, "stopped", True)


def test_a_process_of_jobmonctl_run_has_the_name_and_log_on_record() -> None:
    found = seen(Process(stat=ALIVE, out="pipe:[1]", records=(OPEN,)))
    assert (found.state, found.facts.name, found.facts.log_path) == (
        State.RUNNING,
        "named",
        "/state/4711.log",
    )


@pytest.mark.parametrize("out", ["pipe:[77]", "/tmp/x (deleted)", None])
def test_output_that_is_no_file_is_no_log(out: str | None) -> None:
    assert seen(Process(stat=ALIVE, out=out)).facts.log_path is None


@pytest.mark.parametrize(
    ("record", "state", "native", "code", "signal"),
    [
        (closed(0), State.COMPLETED, "exited 0", 0, None),
        (closed(3), State.FAILED, "exited 3", 3, None),
        (closed(None, 9), State.FAILED, "signal 9", None, 9),
        (closed(0, 15), State.FAILED, "signal 15", 0, 15),
    ],
)
def test_an_end_on_record_decides(
    record: Record, state: State, native: str, code: int | None, signal: int | None
) -> None:
    for stat in (None, ALIVE, replace(ALIVE, state="Z"), replace(ALIVE, start_ticks=9)):
        found = seen(Process(stat=stat, records=(record,), log=a_log(TRACEBACK)))
        assert (found.state, found.native) == (state, native)
        assert (found.facts.exit_code, found.facts.signal) == (code, signal)
        assert (found.facts.ended_at, found.facts.elapsed_s) == (ENDED_AT, 1800)
        assert not found.facts.suspended


def test_an_end_on_record_tells_all_even_if_the_process_was_never_seen() -> None:
    ask = Ask("pid-4711", None, added_at=NOW)
    found = seen(Process(records=(closed(3),)), ask)
    assert found.birth == BIRTH
    assert found.facts == Facts(
        name="named",
        user="alice",
        workdir="/home/alice",
        command="python train.py",
        exit_code=3,
        submitted_at=OPEN.started_at,
        started_at=OPEN.started_at,
        ended_at=ENDED_AT,
        elapsed_s=1799,
        log_path="/state/4711.log",
    )


def test_a_record_of_another_incarnation_says_nothing() -> None:
    other = replace(closed(0), birth="b007:999")
    assert gone(Process(records=(other,))) == "no such process, and no end is on record"


def test_a_number_given_to_a_later_process_is_not_the_job() -> None:
    process = Process(stat=replace(ALIVE, start_ticks=400_000))
    assert gone(process) == "its number belongs to a later process, and no end is on record"


def test_a_number_that_was_free_when_people_wrote_it_down_is_not_the_job() -> None:
    old = Ask("pid-4711", None, added_at=NOW, submitted_at=NOW - timedelta(days=3))
    assert gone(Process(stat=ALIVE, records=(OPEN,)), old) == "no process has the number 4711"
    fresh = replace(old, submitted_at=NOW - timedelta(hours=20))
    assert seen(Process(stat=ALIVE), fresh).state is State.RUNNING
    assert seen(Process(records=(closed(0),)), fresh).state is State.COMPLETED


def test_after_a_restart_of_the_host_nothing_lives_on() -> None:
    ask = replace(ASK, birth="dead:360000")
    assert gone(Process(stat=ALIVE), ask) == (
        "the host was restarted since, and no end is on record"
    )
    record = replace(closed(0), birth="dead:360000")
    assert seen(Process(stat=ALIVE, records=(record,)), ask).state is State.COMPLETED


def test_a_number_that_nobody_has_is_gone() -> None:
    ask = Ask("pid-4711", None, added_at=NOW)
    assert gone(Process(), ask) == "no process has the number 4711"


@pytest.mark.parametrize(
    ("status", "state", "native"),
    [
        (0, State.COMPLETED, "exited 0"),
        (3 << 8, State.FAILED, "exited 3"),
        (9, State.FAILED, "signal 9"),
        (11 | 0x80, State.FAILED, "signal 11"),
    ],
)
def test_a_zombie_has_ended_and_its_user_may_know_how(
    status: int, state: State, native: str
) -> None:
    zombie = Process(stat=Stat("python", "Z", 360_000, status), user="alice")
    found = seen(zombie)
    assert (found.state, found.native) == (state, native)


def test_a_zombie_of_somebody_else_shows_nothing() -> None:
    zombie = Process(stat=Stat("python", "Z", 360_000, 0), user="bob")
    assert gone(zombie) == "it has ended, and nobody here knows how"
    root = replace(HOST, user="root", root=True)
    assert seen(zombie, host=root).state is State.COMPLETED


def test_a_log_that_ends_in_a_traceback_proves_a_failure() -> None:
    found = seen(Process(log=a_log(TRACEBACK)))
    assert (found.state, found.native, found.facts.exit_code) == (State.FAILED, "gone", None)
    assert found.proof == "gone; its log ends with: ValueError: x"


def test_a_log_that_ends_well_proves_the_end() -> None:
    found = seen(Process(log=a_log(b"all done, exit code 0\n")))
    assert (found.state, found.facts.exit_code) == (State.COMPLETED, None)


@pytest.mark.parametrize(
    "log",
    [
        a_log(b"step 1\nstep 2\n"),
        a_log(b""),
        a_log(TRACEBACK, owner="bob"),
        a_log(TRACEBACK, owner="UNKNOWN"),
        None,
    ],
)
def test_a_log_that_proves_nothing_leaves_it_gone(log: Log | None) -> None:
    assert gone(Process(log=log)) == "no such process, and no end is on record"


def test_a_process_that_cannot_be_looked_at_is_not_gone() -> None:
    found = sighting(ASK, Process(hidden="it cannot be looked at: x"), HOST, now=NOW)
    assert found == Unreachable("pid-4711: it cannot be looked at: x")
    # Its own record is enough, though, and so is a restart of the host.
    assert seen(Process(hidden="x", records=(closed(3),))).state is State.FAILED
    assert gone(Process(hidden="x"), replace(ASK, birth="dead:1")).startswith("the host was")


def test_a_process_nothing_was_said_about_is_unreachable() -> None:
    assert isinstance(sighting(ASK, None, HOST, now=NOW), Unreachable)
