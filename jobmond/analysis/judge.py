"""Rules applied to a case: which signals came, stayed and went."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jobmond.model.job import Job
from jobmond.model.observation import Unavailable
from jobmond.model.outcome import Signal
from jobmond.ports import Case, Rule

# Once raised these stay for the life (they may recover); the others clear by their own condition.
LATCHED = frozenset({"rl-collapse", "nan-loss", "grad-explosion", "dead-run"})


@dataclass(frozen=True, slots=True)
class Judged:
    """The signals of a life after a sweep and the difference to before."""

    signals: tuple[Signal, ...]
    opened: tuple[Signal, ...]
    cleared: tuple[Signal, ...]


def judged(case: Case, rules: Iterable[Rule]) -> Judged:
    """Run every rule over `case` and compare with the signals open so far.

    A job whose evidence is stale is not judged: what was open stays open.
    """
    before = case.job.signals
    if case.job.stale:
        return Judged(before, (), ())
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
