"""What the rows about one job prove. Pure, and silent where nothing is proved.

sacct ends a job, and only with an end set. A source that failed moves nothing. A job is gone when
the queue, accounting asked by name, and scontrol have all answered and none knows it.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from jobmond.backends.slurm import states
from jobmond.backends.slurm.accounting import Accounting, AccountingFailed, Accounts, NoAccounting
from jobmond.backends.slurm.facts import facts_of
from jobmond.backends.slurm.fields import instant
from jobmond.backends.slurm.lives import Life, chains, linked
from jobmond.backends.slurm.rows import Detail, NotKnown
from jobmond.model.observation import Ask, EndedLife, Gone, Seen, Sighting, Unreachable
from jobmond.model.state import TERMINAL, State


@dataclass(frozen=True, slots=True)
class Sources:
    """Who answered. `queue_whole`: what is not in the queue's answer is not in the queue."""

    queue_whole: bool
    users: frozenset[str]
    accounting: Accounting

    def covers(self, user: str | None) -> bool:
        """Whether the queue's silence says something about a job of `user`."""
        return self.queue_whole and user in self.users

    def named(self, master: str) -> bool:
        """Whether accounting's silence says something about `master`."""
        if isinstance(self.accounting, Accounts):
            named = self.accounting.named
            return self.accounting.whole and named is not None and master in named
        return isinstance(self.accounting, NoAccounting)


@dataclass(frozen=True, slots=True)
class Terms:
    """How patient a verdict is.

    `grace`: how young a job may be that no source knows yet. `unknown_after`: how long accounting
    may call a job alive that the queue no longer knows.
    """

    grace: timedelta
    unknown_after: timedelta


@dataclass(frozen=True, slots=True)
class Judged:
    """One life. `state` None: nothing is proved, for the reason `why`.

    `left_queue` says that accounting calls it alive and the queue does not know it.
    """

    state: State | None
    native: str = ""
    proof: str = ""
    why: str = ""
    left_queue: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything one sweep knows about one ask that is about a single job, task or component.

    `missing_since`: when the queue was first seen not to know a job that accounting calls alive.
    """

    ask: Ask
    master: str
    lives: tuple[Life, ...]
    sources: Sources
    now: datetime
    terms: Terms
    detail: Detail | None = None
    unreadable: str | None = None
    missing_since: datetime | None = None


def judged(life: Life, sources: Sources) -> Judged:
    """What queue and accounting prove about one life."""
    queue, account = life.queue, life.account
    here = states.canonical(queue.native) if queue else None
    if queue and here is None:
        return Judged(None, why=f"the queue shows a state that is not known: {queue.native}")
    live = here is not None and here not in TERMINAL
    if account and account.end is not None and states.is_end(account.native):
        return _over(life, live, sources)
    if queue and (live or isinstance(sources.accounting, NoAccounting)):
        return Judged(here, queue.native, queue.source)
    return Judged(
        None,
        why=_undecided(life, sources),
        left_queue=queue is None and sources.covers(life.user),
    )


def _undecided(life: Life, sources: Sources) -> str:
    """Why nothing is proved about a life that the queue does not call alive."""
    queue, account = life.queue, life.account
    if account and states.canonical(account.native) is None:
        return f"accounting shows a state that is not known: {account.native}"
    said = f"accounting says {account.native}" if account else "accounting does not say so yet"
    if isinstance(sources.accounting, AccountingFailed):
        said = sources.accounting.why
    if queue:
        return f"the queue says {queue.native}; {said}"
    if sources.covers(life.user):
        return f"the queue no longer knows it; {said}"
    return f"the queue was not asked about its user; {said}"


def _over(life: Life, live: bool, sources: Sources) -> Judged:
    """Accounting has an end; the queue, asked a moment earlier, may still show the job."""
    account, queue = life.account, life.queue
    if account is None:
        raise ValueError("no accounting row")
    ended = Judged(states.canonical(account.native), account.native, "sacct")
    returns = states.may_return(account.native)
    if queue and live:
        here = states.canonical(queue.native)
        waits = here is State.PENDING and not states.ends_while_waiting(account.native)
        return Judged(here, queue.native, queue.source) if returns or waits else ended
    if queue is None and returns and not sources.covers(life.user):
        why = f"accounting says {account.native}, which Slurm may queue again"
        return Judged(None, why=f"{why}, and the queue was not asked about its user")
    return ended


@dataclass(frozen=True, slots=True)
class Chosen:
    """The lives that belong to what was asked: earlier ones, and the current one."""

    current: Life | None
    earlier: tuple[Life, ...] = ()
    doubt: str = ""


def chosen(ask: Ask, lives: tuple[Life, ...]) -> Chosen:
    """Which lives of the id are the asked job's. Ids are given out again; submit times tell."""
    if ask.birth is None:
        return _newest(ask, lives)
    at = next((i for i, life in enumerate(lives) if life.birth == ask.birth), None)
    if at is None:
        return _after_a_gap(ask, lives)
    end = at
    while end + 1 < len(lives) and linked(lives[end], lives[end + 1]):
        end += 1
    current = lives[end]
    if end + 1 < len(lives) and current.ended_at is None and lives[end + 1].queue:
        return Chosen(
            None, doubt="queued again, and accounting does not yet say how its last run ended"
        )
    return Chosen(current, lives[at:end])


def _newest(ask: Ask, lives: tuple[Life, ...]) -> Chosen:
    """First sight: the newest job of that id, unless the submit time that people gave forbids."""
    for chain in reversed(chains(lives)):
        if ask.submitted_at is None or any(_near(ask.submitted_at, life) for life in chain):
            *before, current = chain
            since = int(ask.added_at.timestamp())
            recent = tuple(life for life in before if (life.ended_at or 0) >= since)
            return Chosen(current, recent)
    return Chosen(None)


def _near(hint: datetime, life: Life) -> bool:
    submitted = instant(life.submit)
    return submitted is not None and abs(submitted - hint) <= timedelta(days=1)


def _after_a_gap(ask: Ask, lives: tuple[Life, ...]) -> Chosen:
    """No source shows the life that was asked about, but the id may go on."""
    later = [life for life in lives if life.submit > int(ask.birth or 0)]
    if not later:
        return Chosen(None)
    newest = later[-1]
    restarted = newest.queue is not None and newest.queue.restarts
    same_owner = newest.user is None or ask.facts.user in (None, newest.user)
    if restarted and same_owner:
        return Chosen(newest, tuple(later[:-1]))
    return Chosen(None)


def verdict(evidence: Evidence) -> Sighting:
    """The sighting of one ask."""
    if evidence.unreadable:
        return Unreachable(evidence.unreadable)
    pick = chosen(evidence.ask, evidence.lives)
    if pick.current is None:
        return Unreachable(pick.doubt) if pick.doubt else absent(evidence)
    result = judged(pick.current, evidence.sources)
    if result.state is not None:
        return _seen(evidence, pick, result)
    if result.left_queue and runaway(evidence, pick.current):
        return _gone(evidence, "runaway record: accounting still calls it alive")
    return Unreachable(result.why)


def _seen(evidence: Evidence, pick: Chosen, result: Judged) -> Sighting:
    current = pick.current
    if current is None or result.state is None:
        raise ValueError("nothing to show")
    ask = evidence.ask
    known = ask.facts if ask.birth in (None, current.birth) else None
    facts = facts_of(current, result.state, result.native, known=known)
    facts = replace(facts, detailed=answered(evidence, current, result.state, birth=current.birth))
    return Seen(
        state=result.state,
        native=result.native,
        birth=current.birth,
        facts=facts,
        proof=result.proof,
        previous=_previous(ask, pick),
    )


def answered(evidence: Evidence, life: Life, state: State, *, birth: str) -> bool:
    """Whether scontrol has been asked about this life in this state, or can no longer tell."""
    ask = evidence.ask
    if life.queue is not None and life.queue.restarts is not None:
        return True
    if isinstance(evidence.detail, NotKnown):
        return True
    if life.queue is None and evidence.sources.covers(life.user):
        return True
    return ask.facts.detailed and ask.birth == birth and ask.state is state


def _previous(ask: Ask, pick: Chosen) -> tuple[EndedLife, ...]:
    ended = tuple(_ended(life, ask) for life in pick.earlier)
    current = pick.current
    if ask.birth is None or current is None or ask.birth == current.birth:
        return ended
    if ended and ended[0].birth == ask.birth:
        return ended
    # Only the restart count proves the requeue; how that life ended is nowhere to be read.
    return (EndedLife(ask.birth, State.PREEMPTED, "REQUEUED", ask.facts), *ended)


def _ended(life: Life, ask: Ask) -> EndedLife:
    """An earlier life. One that was merely put back (REQUEUED) counts as preempted."""
    native = life.account.native if life.account else "REQUEUED"
    state = states.canonical(native)
    if state is None or state not in TERMINAL:
        state = State.PREEMPTED
    known = ask.facts if ask.birth == life.birth else None
    return EndedLife(life.birth, state, native, facts_of(life, state, native, known=known))


def runaway(evidence: Evidence, life: Life) -> bool:
    """Whether a life that only accounting calls alive has been out of the queue for too long.

    Once is never enough: after an outage the database is some minutes behind.
    """
    account, terms, now = life.account, evidence.terms, evidence.now
    missing_for = now - (evidence.missing_since or now)
    if missing_for >= terms.unknown_after:
        return True
    start = instant(account.start) if account else None
    if account is None or start is None or account.limit_s is None or missing_for < terms.grace:
        return False
    return now - start >= timedelta(seconds=account.limit_s) + terms.unknown_after


def absent(evidence: Evidence) -> Sighting:
    """No row at all: gone only when everybody who could know has been asked and is sure."""
    ask, sources = evidence.ask, evidence.sources
    if isinstance(sources.accounting, AccountingFailed):
        return Unreachable(f"the queue does not know it, and {sources.accounting.why}")
    if not sources.queue_whole:
        return Unreachable("the queue's answer may be incomplete")
    if not sources.named(evidence.master):
        return Unreachable("the queue does not know it; accounting is asked for it by name next")
    born = max(filter(None, (ask.submitted_at, ask.facts.submitted_at, ask.added_at)))
    if evidence.now - born < evidence.terms.grace:
        return Unreachable("neither queue nor accounting knows it yet, and it is too young to miss")
    return _gone(evidence, _who_denies(evidence))


def _who_denies(evidence: Evidence) -> str:
    if evidence.lives:
        return "the id belongs to a job submitted at another time"
    if isinstance(evidence.sources.accounting, NoAccounting):
        return "the queue does not know it, and this cluster keeps no accounting"
    return "neither queue nor accounting knows it"


def _gone(evidence: Evidence, reason: str) -> Sighting:
    """Gone, if scontrol does not know it either."""
    detail = evidence.detail
    if detail is None:
        return Unreachable(f"{reason}; scontrol has still to be asked")
    complete = not isinstance(evidence.sources.accounting, NoAccounting)
    # scontrol may know the id as another job's: then it is in `lives`, and was not chosen.
    if isinstance(detail, NotKnown) or (isinstance(detail, tuple) and _strangers(evidence)):
        return Gone(reason, complete=complete)
    why = "its answer cannot be used" if isinstance(detail, tuple) else detail.why
    return Unreachable(f"{reason}; scontrol: {why}")


def _strangers(evidence: Evidence) -> bool:
    return chosen(evidence.ask, evidence.lives).current is None
