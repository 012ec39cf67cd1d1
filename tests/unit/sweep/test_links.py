"""A sweep of jobs that have jobs in SLURM of their own."""

from dataclasses import replace
from datetime import timedelta

from jobmond.analysis import notices
from jobmond.analysis.settle import settled
from jobmond.backends._files import FileReader
from jobmond.model.observation import Facts, Link, Part, Poll, Seen, Unreachable
from jobmond.model.state import Bucket, Kind, State
from jobmond.sweep.cluster import Cluster
from jobmond.sweep.observe import ask, log_asks, log_readers
from tests.doubles import ScriptedTransport
from tests.doubles_store import FixedClock
from tests.unit.builders import DAY, NOW, by_name, job, seen, unseen

INVOCATION = "65f68ad6c803b542"


class Source:
    """Gives answers by id, and keeps what it was asked."""

    discovers = True

    def __init__(self, answers=None, found=(), trouble=None):
        self.answers = answers or {}
        self.found = tuple(found)
        self.trouble = trouble
        self.asked = None

    async def poll(self, asks, *, since, now, timeout_s):
        self.asked = list(asks)
        sightings = {
            one.native_id: self.answers.get(one.native_id, Unreachable("silent")) for one in asks
        }
        found = [(i, s) for i, s in self.found if i not in sightings]
        return Poll(sightings, found=tuple(found), trouble=self.trouble)

    def valid_id(self, native_id):
        return None


def own(*links: str, name: str = INVOCATION, **more) -> Seen:
    parts = tuple(
        Part(f"{name}.{n}", "running", links=(Link(link),), chained=True, folder=f"/runs/{n}")
        for n, link in enumerate(links)
    )
    facts = Facts(name="eval", bucket=Bucket.EVAL)
    return replace(Seen(State.PENDING, "running", name, facts, "nel", parts=parts), **more)


def invocation(**changes):
    return unseen(INVOCATION, kind=Kind.NEL, id=7, **changes)


async def asked(nel: Source, slurm: Source, *jobs, discover=False):
    logs = FileReader(ScriptedTransport(RuntimeError("nobody reads logs here")))
    sources = {Kind.SLURM: slurm, Kind.NEL: nel}
    cluster = Cluster("lab", "slurm", sources, logs, (), discover=discover)
    return await ask(cluster, jobs, since=NOW - timedelta(minutes=1), clock=FixedClock())


def moved(answers, *jobs, adopt=False):
    return settled(
        "lab",
        jobs,
        answers.sightings,
        answers.found,
        adopt=adopt,
        adopt_ended=True,
        lives={},
        classify=by_name,
        now=NOW,
        unknown_for=DAY,
    )


async def test_links_are_asked_about_in_the_one_question_to_slurm():
    nel, slurm = Source({INVOCATION: own("4711", "4712")}), Source()
    await asked(nel, slurm, invocation(), job("4700"))
    assert {one.native_id for one in slurm.asked} == {"4700", "4711", "4712"}


async def test_a_link_that_is_tracked_by_itself_is_asked_about_as_that():
    nel, slurm = Source({INVOCATION: own("4711")}), Source()
    await asked(nel, slurm, invocation(), job("4711"))
    [one] = slurm.asked
    assert (one.native_id, one.birth) == ("4711", "100")


async def test_the_first_sweep_settles_it():
    nel = Source({INVOCATION: own("4711")})
    slurm = Source({"4711": seen(State.FAILED, exit_code=1, user="alice")})
    one = invocation()
    [move] = moved(await asked(nel, slurm, one), one)
    assert (move.job.state, move.job.tracked) == (State.FAILED, False)
    assert move.job.facts.exit_code == 1
    assert move.job.birth == INVOCATION
    assert move.job.parts[0].links[0].state is State.FAILED
    assert move.job.facts.workdir == "/runs/0"


async def test_a_silent_nel_is_no_reason_not_to_look():
    nel, slurm = Source(), Source({"4711": seen(State.COMPLETED)})
    parts = (Part("x.0", "running", links=(Link("4711"),), chained=True),)
    one = job(INVOCATION, kind=Kind.NEL, id=7, birth=INVOCATION, parts=parts)
    [move] = moved(await asked(nel, slurm, one), one)
    assert move.job.state is State.COMPLETED


async def test_slurm_that_does_not_answer_moves_nothing():
    nel, slurm = Source({INVOCATION: own("4711")}), Source(trouble="slurmdbd is down")
    one = job(INVOCATION, kind=Kind.NEL, id=7, birth=INVOCATION)
    answers = await asked(nel, slurm, one)
    [move] = moved(answers, one)
    assert answers.trouble == "slurmdbd is down"
    assert (move.job.state, move.job.stale, move.transition) == (State.RUNNING, True, None)


async def test_the_jobs_of_an_invocation_are_no_finds():
    waits = seen(State.PENDING, dependency="afternotok:4711(unfulfilled)")
    nel = Source({INVOCATION: own("4711")})
    slurm = Source(
        {"4711": seen(State.RUNNING)}, found=[("4712", waits), ("4799", seen(State.RUNNING))]
    )
    one = invocation()
    answers = await asked(nel, slurm, one, discover=True)
    assert [f.native_id for f in answers.found] == ["4799"]
    moves = moved(answers, one, adopt=True)
    assert {m.job.native_id for m in moves} == {INVOCATION, "4799"}


async def test_an_invocation_that_is_found_is_what_slurm_says():
    nel = Source(found=[(INVOCATION, own("4711"))])
    slurm = Source({"4711": seen(State.RUNNING)})
    answers = await asked(nel, slurm, discover=True)
    [move] = moved(answers, adopt=True)
    assert (move.job.kind, move.job.state) == (Kind.NEL, State.RUNNING)
    assert move.job.parts[0].links[0].birth == "100"


async def test_one_that_nobody_can_tell_about_is_not_taken_yet():
    nel = Source(found=[(INVOCATION, own("4711"))])
    answers = await asked(nel, Source(), discover=True)
    assert answers.found == ()


async def test_a_chain_that_goes_on_is_one_restart():
    parts = (Part("x.0", "pending", links=(Link("4711"), Link("4712", waits=True)), chained=True),)
    nel = Source({INVOCATION: own("4711")})
    slurm = Source({"4711": seen(State.TIMEOUT), "4712": seen(State.PENDING)})
    one = job(INVOCATION, kind=Kind.NEL, id=7, birth=INVOCATION, parts=parts)
    one = replace(one, parts=(replace(parts[0], name=f"{INVOCATION}.0"),))
    [move] = moved(await asked(nel, slurm, one), one)
    assert (move.job.state, move.job.successor) == (State.PENDING, "lab/4712")
    assert (move.restarted_as, move.restarted_in) == ("lab/4712", State.PENDING)
    assert move.transition is not None
    news = notices.restart_news(
        move.job, move.transition, after=State.PENDING, successor="lab/4712", at=NOW
    )
    assert (news.payload["before"], news.payload["after"]) == ("RUNNING", "PENDING")
    # It runs again: no successor any more.
    slurm = Source({"4712": seen(State.RUNNING)})
    nel = Source({INVOCATION: own("4711")})
    again = own("4711")
    ran = replace(again.parts[0], links=(Link("4711"), Link("4712")))
    nel.answers[INVOCATION] = replace(again, parts=(ran,))
    [later] = moved(await asked(nel, slurm, move.job), move.job)
    assert (later.job.state, later.job.successor) == (State.RUNNING, None)
    assert later.job.facts.restarts == 1


async def test_a_job_may_turn_out_to_have_another_id():
    nel = Source({"65f68ad6": own("4711", native_id=INVOCATION)})
    slurm = Source({"4711": seen(State.RUNNING)})
    one = invocation()
    one = replace(one, native_id="65f68ad6")
    [move] = moved(await asked(nel, slurm, one), one)
    assert (move.job.native_id, move.job.birth, move.job.id) == (INVOCATION, INVOCATION, 7)


def test_a_launchers_jobs_own_logs_count_once_it_ended():
    facts = Facts(log_path="/home/alice/ptq.log", workdir="/scratch/exp/ptq_0")
    running = job("cicd_1759395000", kind=Kind.LAUNCHER, facts=facts)
    readers = log_readers(moved_of(running))
    [one] = log_asks(readers, lambda job: None, tail_bytes=65536, failed_bytes=2**20)
    assert (one.kind, one.path, one.workdir) == (Kind.LAUNCHER, facts.log_path, None)


def moved_of(*jobs):
    from jobmond.analysis.settle import Move

    return [Move(one, one) for one in jobs]


async def test_secrets_in_the_names_of_links_are_masked_too():
    nel = Source({INVOCATION: own("4711")})
    secret = "train --key=hf_abcdefghijklmnopqrstuvwxyz012345"
    slurm = Source({"4711": seen(State.RUNNING, name=secret, command=secret)})
    answers = await asked(nel, slurm, invocation())
    assert "abcdefghij" not in repr(answers.sightings)


def test_launchers_alone_keep_no_daemon_awake():
    logs = FileReader(ScriptedTransport(RuntimeError("nobody reads logs here")))
    alone = Cluster("here", "local", {Kind.NEL: Source()}, logs, (), discover=True)
    assert not alone.discovers
    assert replace(alone, backends={Kind.NEL: Source(), Kind.SLURM: Source()}).discovers
