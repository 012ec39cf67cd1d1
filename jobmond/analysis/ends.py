"""Which ends somebody should know the reason of."""

from jobmond.analysis import notices
from jobmond.analysis.settle import Move
from jobmond.model.state import PostMortem, Severity, State


def wants_explaining(move: Move) -> bool:
    """Whether this sweep looks into how the job ended, or did so before and has not finished."""
    return to_explain(move) or move.job.post_mortem is PostMortem.PENDING


def to_explain(move: Move) -> bool:
    """Whether this sweep saw an end that somebody should know the reason of."""
    return (
        move.transition is not None
        and move.restarted_as is None
        and not move.silent
        and (notices.severity(move.job.state) is Severity.ALARM or _put_out(move.job.state))
    )


def _put_out(state: State) -> bool:
    """Whether it was evicted for good: something took its place, or was short."""
    return state is State.PREEMPTED
