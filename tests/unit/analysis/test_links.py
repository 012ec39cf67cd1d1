"""The word of a source that only launches, and SLURM's about the jobs it launched."""

from dataclasses import replace

import pytest

from jobmond.analysis.links import Others, joined, link_asks, linked, merged
from jobmond.model.observation import Facts, Gone, Link, Part, Seen, Unreachable
from jobmond.model.state import State
from tests.unit.builders import NOW, at, seen

INVOCATION = "65f68ad6c803b542"


def part(n: int = 0, *links: str, word: str = "running", **more) -> Part:
    """A row of nel, by what it says and its jobs in SLURM."""
    own = {"success": State.COMPLETED, "killed": State.CANCELLED}.get(word)
    held = {"chained": True, "folder": f"/runs/{n}", "state": own} | more
    return Part(f"{INVOCATION}.{n}", word, links=tuple(map(Link, links)), **held)


def nel(*parts: Part, **facts) -> Seen:
    facts.setdefault("name", "eval")
    return Seen(State.RUNNING, "running", INVOCATION, Facts(**facts), proof="nel", parts=parts)


def whole(own, answers, known=(), others=(), **more):
    answers = {**dict(others), **answers}
    return joined(own, known, answers, others=Others.of(others), now=NOW, **more)


SLURM = {
    "4711": seen(State.RUNNING, name="nel-1"),
    "4712": seen(State.COMPLETED, name="nel-2", exit_code=0),
    "4713": seen(State.FAILED, name="nel-3", exit_code=1),
    "4714": seen(State.PENDING, name="nel-4"),
    "4715": seen(State.TIMEOUT, name="nel-5"),
}


@pytest.mark.parametrize(
    ("links", "state"),
    [
        (["4711"], State.RUNNING),
        (["4712"], State.COMPLETED),
        (["4713"], State.FAILED),
        (["4714"], State.PENDING),
        (["4715"], State.TIMEOUT),
        (["4711", "4713"], State.RUNNING),
        (["4713", "4714"], State.PENDING),
        (["4712", "4713"], State.FAILED),
        (["4712", "4715"], State.TIMEOUT),
    ],
)
def test_the_whole_is_what_slurm_says_of_its_parts(links, state):
    found = whole(nel(*(part(i, link) for i, link in enumerate(links))), SLURM)
    assert isinstance(found, Seen)
    assert found.state is state
    assert found.facts.name == "eval"
    assert found.birth == INVOCATION


def test_all_parts_done_is_done_and_counted():
    found = whole(nel(part(0, "4712"), part(1, "4712x")), SLURM | {"4712x": SLURM["4712"]})
    assert found.state is State.COMPLETED
    assert found.facts.tasks.total == 2
    assert found.facts.tasks.by_state == {State.COMPLETED: 2}
    assert found.facts.exit_code == 0


def test_the_parts_that_failed_are_named():
    found = whole(nel(part(0, "4712"), part(1, "4713"), part(2, "4711")), SLURM)
    assert found.state is State.RUNNING
    assert found.facts.tasks.failed == (f"{INVOCATION}.1",)


@pytest.mark.parametrize("word", ["failed", "pending", "running", "unknown", "error"])
def test_without_slurm_no_word_of_nel_moves_anything(word):
    for answer in ({}, {"4711": Unreachable("ssh: connection refused")}):
        found = whole(nel(part(0, "4711", word=word)), answer, before=seen(State.RUNNING))
        assert isinstance(found, Unreachable)
        assert "SLURM has not answered for 4711" in found.error
        assert word in found.error


@pytest.mark.parametrize(
    ("word", "state"), [("success", State.COMPLETED), ("killed", State.CANCELLED)]
)
def test_what_nel_can_only_know_from_slurm_is_believed(word, state):
    found = whole(nel(part(0, "4711", word=word)), {"4711": Unreachable("down")})
    assert isinstance(found, Seen)
    assert found.state is state


def test_slurm_goes_before_nels_success():
    found = whole(nel(part(0, "4711", word="success")), SLURM)
    assert found.state is State.RUNNING


def test_a_silent_nel_does_not_hide_slurm():
    known = merged((), [part(0, "4711")], NOW)
    before = seen(State.PENDING, birth=INVOCATION, name="eval")
    found = whole(Unreachable("nel hangs"), {"4711": SLURM["4713"]}, known, before=before)
    assert found.state is State.FAILED
    assert found.facts.name == "eval"
    assert found.facts.exit_code == 1


def test_a_lost_exec_db_does_not_lose_a_job_that_slurm_knows():
    known = merged((), [part(0, "4711")], NOW)
    found = whole(Gone("not_found"), SLURM, known, before=seen(State.RUNNING, birth=INVOCATION))
    assert found.state is State.RUNNING


def test_without_links_the_sources_word_is_all_there_is():
    alone = seen(State.RUNNING)
    assert whole(alone, {}) is alone
    assert whole(Gone("not_found"), {}) == Gone("not_found")


def test_parts_without_links_are_what_their_source_says():
    rows = [part(0, word="success"), part(1, state=State.FAILED, word="failed")]
    found = whole(nel(*rows), {})
    assert found.state is State.FAILED
    assert found.facts.tasks.failed == (f"{INVOCATION}.1",)
    assert whole(nel(part(0, word="pending")), {}) == Unreachable(
        f"{INVOCATION}.0 is called pending, which proves nothing"
    )


def test_a_link_that_slurm_knows_no_more_is_lost_with_its_job():
    found = whole(nel(part(0, "4711")), {"4711": Gone("record-gone")})
    assert found == Gone("record-gone", complete=True)
    found = whole(nel(part(0, "4711")), {"4711": Gone("no accounting", complete=False)})
    assert found == Gone("no accounting", complete=False)


def test_an_end_is_remembered_and_not_asked_for_again():
    first = whole(nel(part(0, "4713"), part(1, "4711")), SLURM)
    assert [ask.native_id for ask in link_asks(first.parts, NOW)] == ["4711"]
    again = whole(nel(part(0, "4713"), part(1, "4711")), {"4711": SLURM["4712"]}, first.parts)
    assert again.state is State.FAILED


def test_another_job_under_a_recycled_id_is_no_answer():
    first = whole(nel(part(0, "4711")), SLURM)
    stranger = {"4711": seen(State.FAILED, birth="999")}
    found = whole(nel(part(0, "4711")), stranger, first.parts)
    assert found.state is State.RUNNING


def test_a_requeue_of_the_link_goes_on():
    first = whole(nel(part(0, "4711")), SLURM)
    life = seen(State.FAILED)
    again = replace(seen(State.PENDING, birth="200"), previous=(_ended(life),))
    found = whole(nel(part(0, "4711")), {"4711": again}, first.parts)
    assert found.state is State.PENDING
    assert found.parts[0].links[0].birth == "200"


def _ended(life: Seen):
    from jobmond.model.observation import EndedLife

    return EndedLife(life.birth, life.state, life.native, life.facts)


class TestChain:
    """nel queues the next job of a chain when one begins; it goes on after a TIMEOUT only."""

    def test_a_successor_is_found_by_its_dependency(self):
        waits = seen(State.PENDING, dependency="afternotok:4711(unfulfilled)")
        found = whole(nel(part(0, "4711")), SLURM, others=[("4716", waits)])
        assert found.state is State.RUNNING
        assert [link.native_id for link in found.parts[0].links] == ["4711", "4716"]
        assert linked(found.parts) == {"4711", "4716"}

    def test_and_by_its_script_where_the_scheduler_forgot_the_dependency(self):
        waits = seen(State.PENDING, command="/runs/0/run.sub")
        found = whole(nel(part(0, "4715")), SLURM, others=[("4716", waits)])
        assert [link.native_id for link in found.parts[0].links] == ["4715", "4716"]

    def test_an_older_job_of_the_same_script_is_no_successor(self):
        older = seen(State.PENDING, command="/runs/0/run.sub")
        found = whole(nel(part(0, "4715")), SLURM, others=[("4700", older)])
        assert [link.native_id for link in found.parts[0].links] == ["4715"]

    def chain(self, *waiting: str) -> tuple[Part, ...]:
        links = (Link("4715"), *(Link(one, waits=True) for one in waiting))
        return merged((), [replace(part(0), links=links)], NOW)

    def test_after_a_timeout_it_goes_on(self):
        answers = SLURM | {"4716": seen(State.PENDING)}
        found = whole(nel(part(0, "4715")), answers, self.chain("4716"))
        assert found.state is State.PENDING
        assert found.successor == "4716"
        assert found.facts.reason == "job 2 of its chain is 4716"

    def test_until_slurm_has_answered_for_the_successor_nothing_is_known(self):
        found = whole(nel(part(0, "4715")), SLURM, self.chain("4716"))
        assert found == Unreachable("SLURM has not answered for 4716")

    def test_a_successor_that_never_starts_continues_nothing(self):
        never = seen(State.PENDING, reason="DependencyNeverSatisfied")
        found = whole(nel(part(0, "4715")), SLURM | {"4716": never}, self.chain("4716"))
        assert found.state is State.TIMEOUT
        assert found.successor is None

    def test_a_chain_that_stopped_itself_ends_as_its_last_job(self):
        stopped = SLURM | {"4716": seen(State.FAILED, exit_code=1)}
        assert whole(nel(part(0, "4715")), stopped, self.chain("4716")).state is State.TIMEOUT

    def test_after_a_failure_the_successor_only_exits(self):
        links = (Link("4713"), Link("4716", waits=True))
        known = merged((), [replace(part(0), links=links)], NOW)
        answers = SLURM | {"4716": seen(State.PENDING)}
        assert whole(nel(part(0, "4713")), answers, known).state is State.FAILED

    def test_a_successor_left_behind_is_reported_and_no_more(self):
        links = (Link("4712"), Link("4716", waits=True))
        known = merged((), [replace(part(0), links=links)], NOW)
        never = SLURM | {"4716": seen(State.PENDING, reason="DependencyNeverSatisfied")}
        found = whole(nel(part(0, "4712")), never, known)
        assert found.state is State.COMPLETED
        assert found.facts.message == (
            "4716 is left waiting for what never comes: scancel 4716 removes it"
        )

    def test_the_length_of_a_chain_is_kept(self):
        answers = SLURM | {"4720": seen(State.RUNNING)}
        found = whole(nel(part(0, "4715", "4718", "4720")), answers)
        assert found.state is State.RUNNING
        assert found.facts.restarts == 2

    def test_only_its_last_job_is_asked_about(self):
        parts = merged((), [part(0, "4715", "4718", "4720")], NOW)
        assert [ask.native_id for ask in link_asks(parts, NOW)] == ["4720"]

    def test_what_waited_and_ran_is_one_link(self):
        known = self.chain("4716")
        parts = merged(known, [part(0, "4715", "4716")], at(15))
        assert [(k.native_id, k.waits) for k in parts[0].links] == [
            ("4715", False),
            ("4716", False),
        ]
        assert parts[0].links[1].added_at == NOW


class TestPipeline:
    """Tasks of a launcher's experiment, each after the one before."""

    def tasks(self, *links: str) -> Seen:
        parts = [part(i, link, chained=False) for i, link in enumerate(links)]
        return replace(nel(*parts), parts=tuple(parts))

    def test_what_waits_for_a_failed_task_for_ever_has_failed_with_it(self):
        never = seen(State.PENDING, reason="DependencyNeverSatisfied")
        found = whole(self.tasks("4713", "4719"), SLURM | {"4719": never})
        assert found.state is State.FAILED
        assert found.facts.exit_code == 1
        assert found.facts.tasks.by_state == {State.FAILED: 1, State.PENDING: 1}

    def test_as_long_as_that_is_not_sure_it_waits(self):
        waits = seen(State.PENDING, reason="Dependency")
        found = whole(self.tasks("4713", "4719"), SLURM | {"4719": waits})
        assert found.state is State.PENDING

    def test_a_timeout_of_a_task_is_an_end(self):
        assert whole(self.tasks("4712", "4715"), SLURM).state is State.TIMEOUT


def test_times_are_those_of_the_parts():
    answers = {
        "1": seen(State.COMPLETED, started_at=at(-60), ended_at=at(-30)),
        "2": seen(State.COMPLETED, started_at=at(-50), ended_at=at(-5)),
    }
    found = whole(nel(part(0, "1"), part(1, "2")), answers)
    assert (found.facts.started_at, found.facts.ended_at) == (at(-60), at(-5))


def test_a_row_that_its_source_forgets_stays():
    known = merged((), [part(0, "4711"), part(1, "4712")], NOW)
    parts = merged(known, [part(0, "4711")], at(15))
    assert [one.name for one in parts] == [f"{INVOCATION}.0", f"{INVOCATION}.1"]
