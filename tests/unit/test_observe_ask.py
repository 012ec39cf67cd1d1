"""What a source is told of a job it is asked about."""

from dataclasses import replace
from datetime import timedelta

import pytest

from jobmond.analysis.faults.catalogue import FAR_NEEDLES
from jobmond.analysis.settle import Move
from jobmond.backends._files import FileReader
from jobmond.model.job import Choices, LogEvidence
from jobmond.model.observation import Examine, Facts, Poll, Seen, Unreachable
from jobmond.model.outcome import Transition
from jobmond.model.state import Kind, State
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.observe import ask, log_asks, log_readers
from tests.doubles import ScriptedTransport
from tests.doubles_store import FixedClock
from tests.unit.builders import NOW, at, job


class Listening:
    """A source that keeps what it was asked."""

    kind = "local"
    discovers = False

    def __init__(self, answer=None, found=()):
        self.asks = []
        self.answer = answer or Unreachable("silent")
        self.found = found

    async def poll(self, asks, *, since, now, timeout_s):
        self.asks += asks
        return Poll({one.native_id: self.answer for one in asks}, found=self.found)

    def valid_id(self, native_id):
        return None


async def asked(one):
    source = Listening()
    await answered(source, one)
    return source.asks[0]


async def answered(source, one):
    logs = FileReader(ScriptedTransport(RuntimeError("nobody reads logs here")))
    cluster = Cluster("local", "local", {Kind.LOCAL: source}, logs, ())
    return await ask(cluster, [one], since=NOW - timedelta(minutes=1), clock=FixedClock())


async def test_a_log_that_a_person_named_is_the_one_to_judge_by():
    one = replace(job(), kind=Kind.LOCAL, facts=Facts(log_path="/proc-says", workdir="/w"))
    assert (await asked(one)).facts == Facts(log_path="/proc-says", workdir="/w")
    named = replace(one, choices=Choices(log_path="/person-says"))
    assert (await asked(named)).facts == Facts(log_path="/person-says", workdir="/w")


async def test_secrets_in_names_go_no_further():
    told = Seen(State.RUNNING, "R", "1", Facts(name="train api_key=abc123"), "/proc")
    one = replace(job(), kind=Kind.LOCAL)
    answers = await answered(Listening(told, found=(("9", told),)), one)
    names = [seen.facts.name for seen in answers.sightings.values()]
    assert [*names, answers.found[0].seen.facts.name] == ["train api_key=****"] * 2


def test_of_a_job_that_ended_badly_more_of_its_log_is_asked_for():
    over = job(state=State.FAILED, facts=Facts(log_path="/l/a.out", err_path="/l/a.err"))
    ended = Move(job(), over, Transition(NOW, State.RUNNING, State.FAILED, "FAILED"))
    alive = Move(job("4712"), job("4712"), None)
    asks = log_asks(
        {"4711": ended, "4712": alive}, lambda _: None, tail_bytes=65536, failed_bytes=1310720
    )
    wide, narrow = asks[0].examine, asks[1].examine
    assert narrow is None
    assert wide is not None
    assert wide == Examine(FAR_NEEDLES, wide.beside)
    assert wide.beside[:2] == ("/l/a.err", "server-*4711*.log")
    assert wide.most_bytes == 1310720


def test_a_restart_is_not_looked_into():
    over = job(state=State.TIMEOUT, facts=Facts(log_path="/l/a.out"))
    went_on = Transition(NOW, State.RUNNING, State.TIMEOUT, "TIMEOUT")
    move = Move(job(), over, went_on, restarted_as="lab/4712", restarted_in=State.PENDING)
    [ask] = log_asks({"4711": move}, lambda _: None, tail_bytes=65536, failed_bytes=1310720)
    assert ask.examine is None


@pytest.mark.parametrize("kind", [Kind.KUBERNETES, Kind.IRIS])
def test_of_a_log_that_is_served_more_of_the_end_is_asked_for(kind):
    over = job(state=State.FAILED, kind=kind)
    move = Move(job(), over, Transition(NOW, State.RUNNING, State.FAILED, "FAILED"))
    [ask] = log_asks({"4711": move}, lambda _: None, tail_bytes=65536, failed_bytes=1310720)
    assert (ask.examine, ask.tail_bytes) == (None, 262144)


def test_the_log_that_was_read_longest_ago_comes_first_whoever_sweeps():
    read = {"1": at(-15), "2": at(-45), "3": None, "4": at(-30)}
    jobs = [job(native_id, log=LogEvidence(read_at=when)) for native_id, when in read.items()]
    urgent = job("5", log=LogEvidence(read_at=NOW))
    ended = Move(urgent, urgent, Transition(NOW, State.PENDING, State.RUNNING, "RUNNING"))
    found = log_readers([*(Move(one, one) for one in jobs), ended])
    assert list(found) == ["5", "3", "2", "4", "1"]
