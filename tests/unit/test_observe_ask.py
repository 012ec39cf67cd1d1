"""What a source is told of a job it is asked about."""

from dataclasses import replace
from datetime import timedelta

from jobmond.backends._files import FileReader
from jobmond.model.job import Choices
from jobmond.model.observation import Facts, Poll, Seen, Unreachable
from jobmond.model.state import Kind, State
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.observe import ask
from tests.doubles import ScriptedTransport
from tests.doubles_store import FixedClock
from tests.unit.builders import NOW, job


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
