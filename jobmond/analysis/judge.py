"""Rules applied to a case: which signals came, stayed and went."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from jobmond.model.job import Job
from jobmond.model.observation import Unavailable
from jobmond.model.outcome import Signal
from jobmond.ports import Case, Rule

# Once raised these stay for the life (they may recover); the others clear by their own condition.
LATCHED = frozenset({"rl-collapse", "nan-loss", "grad-explosion", "dead-run"})

# These speak of logged steps; they are applied while a log is read, not to each sweep's case.
STEPPED = ("rl-collapse", "rl-watch", "nan-loss", "grad-explosion", "dead-run")

# After so many logged steps without it a run that was meant to have spikes has recovered.
CLEAN_STEPS = 10


@dataclass(frozen=True, slots=True)
class Judged:
    """The signals of a life after a sweep and the difference to before."""

    signals: tuple[Signal, ...]
    opened: tuple[Signal, ...] = ()
    cleared: tuple[Signal, ...] = ()
    recovered: tuple[Signal, ...] = ()

    def __add__(self, other: "Judged") -> "Judged":
        """Both of one life, of different rules."""
        return Judged(
            self.signals + other.signals,
            self.opened + other.opened,
            self.cleared + other.cleared,
            self.recovered + other.recovered,
        )


def judged(case: Case, rules: Iterable[Rule]) -> Judged:
    """Run every rule over `case` and compare with the signals open so far.

    A job whose evidence is stale is not judged: what was open stays open. Rules over steps have
    their own: `judged_steps`.
    """
    before = tuple(s for s in case.job.signals if s.rule not in STEPPED)
    if case.job.stale:
        return Judged(before)
    rules = tuple(rules)
    fired = {s.rule: s for rule in rules for s in rule.judge(case)}
    blind = {rule.id for rule in rules if _blind(rule, case)}
    standing = {s.rule: s for s in before if s.cleared_at is None}
    kept: list[Signal] = [s for s in before if s.cleared_at is not None]
    opened: list[Signal] = []
    cleared: list[Signal] = []
    for name, signal in standing.items():
        if name in fired:
            kept.append(_continued(signal, fired[name]))
        elif name in LATCHED or name in blind:
            kept.append(signal)
        else:
            gone = replace(signal, cleared_at=case.now)
            kept.append(gone)
            cleared.append(gone)
    for name, signal in fired.items():
        if name not in standing:
            fresh = replace(signal, opened_at=case.now)
            kept.append(fresh)
            opened.append(fresh)
    return Judged(tuple(kept), tuple(opened), tuple(cleared))


def _blind(rule: Rule, case: Case) -> bool:
    """Whether a fetch failed without which the rule cannot tell whether it goes on. A change of
    state is an answer.
    """
    if case.before is not None and case.before.state is not case.job.state:
        return False
    needs: tuple[str, ...] = getattr(rule, "needs", ())
    return any(isinstance(getattr(case, name), Unavailable) for name in needs)


@dataclass(frozen=True, slots=True)
class Steps:
    """What rules over steps found in the steps that were read now.

    `fired` are their signals in the log's newest life, one a rule, from the first firing to the
    last. `newest` is the last step (None where nothing new was read), `clean` how many steps
    were logged after a given one. `same_life`: it is the life that was known before.
    """

    fired: Mapping[str, Signal]
    newest: int | None
    logged: Sequence[int] = ()
    same_life: bool = True

    def clean(self, since: int | None) -> int:
        return sum(1 for step in self.logged if since is None or step > since)


def carried(job: Job) -> Judged:
    """The signals of rules over steps where no log was read."""
    return Judged(tuple(s for s in job.signals if s.rule in STEPPED))


def judged_steps(job: Job, steps: Steps, *, now: datetime) -> Judged:
    """Signals of rules over steps, compared with those open so far.

    The first firing names the signal, the last one moves on. What is not latched stands only
    while it fires at the newest step.
    """
    kept: list[Signal] = []
    cleared: list[Signal] = []
    recovered: list[Signal] = []
    standing: set[str] = set()
    for known in (s for s in job.signals if s.rule in STEPPED):
        if known.cleared_at is not None:
            kept.append(known)
            continue
        after = _stepped(known, steps, spikes="spike-mitigation" in job.labels, now=now)
        kept.append(after)
        if after.cleared_at is not None:
            cleared.append(after)
            continue
        standing.add(known.rule)
        if after.recovered_at is not None and known.recovered_at is None:
            recovered.append(after)
    opened = [
        replace(signal, opened_at=now)
        for rule, signal in steps.fired.items()
        if rule not in standing and (rule in LATCHED or signal.last_step == steps.newest)
    ]
    return Judged((*kept, *opened), tuple(opened), tuple(cleared), tuple(recovered))


def _stepped(known: Signal, steps: Steps, *, spikes: bool, now: datetime) -> Signal:
    """An open signal after new steps."""
    if not steps.same_life:
        return replace(known, cleared_at=now)
    again = steps.fired.get(known.rule)
    latched = known.rule in LATCHED
    if again is not None and (latched or again.last_step == steps.newest):
        return replace(known, last_step=again.last_step, recovered_at=None)
    if not latched:
        return replace(known, cleared_at=now) if steps.newest is not None else known
    if spikes and known.recovered_at is None and steps.clean(known.last_step) >= CLEAN_STEPS:
        return replace(known, recovered_at=now)
    return known


def _continued(known: Signal, fired: Signal) -> Signal:
    return replace(
        fired,
        opened_at=known.opened_at,
        step=known.step if known.step is not None else fired.step,
        recovered_at=known.recovered_at,
    )


def standing(job: Job) -> tuple[Signal, ...]:
    """The signals of `job` that have not cleared."""
    return tuple(s for s in job.signals if s.cleared_at is None)
