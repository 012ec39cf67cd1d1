"""What the sources say about one life, as facts."""

from jobmond.analysis.visible import readable, visible
from jobmond.backends.slurm import states
from jobmond.backends.slurm.fields import instant, signal_of, title, words
from jobmond.backends.slurm.lives import Life
from jobmond.backends.slurm.rows import AccountRow, QueueRow
from jobmond.model.observation import Facts
from jobmond.model.state import TERMINAL, State

# Slurm writes 0:53 when it could not start the script: work directory or output path unusable.
_NOT_STARTED = (0, 53)
_NOT_STARTED_REASON = "the job could not be started: work directory or output path unusable (0:53)"
_PROCESS_RETURNED = frozenset({State.COMPLETED, State.FAILED, State.OUT_OF_MEMORY})
# Slurm makes these exit codes up: no process returned 1.
_INVENTED_CODE = frozenset({"NODE_FAIL", "BOOT_FAIL", "DEADLINE"})


def facts_of(life: Life, state: State, native: str, *, known: Facts | None) -> Facts:
    """`known` are earlier facts of the same life; what only scontrol tells is taken from there."""
    queue, account = life.queue, life.account
    over = state in TERMINAL
    waiting = state is State.PENDING
    pair = _exit(queue, account) if over else None
    known = known or Facts()
    row = life.row
    started = None if waiting else _started(queue, account)
    restarts = queue.restarts if queue else None
    return Facts(
        name=_name(queue, account),
        user=row.user,
        partition=row.partition,
        account=row.account,
        comment=queue.comment if queue else None,
        workdir=words(row.workdir or b""),
        command=words(queue.command or b"") if queue else None,
        submit_line=account.submit_line if account else None,
        node_count=(queue.node_count if queue else None) or known.node_count,
        gpus=(queue.gpus if queue else None) or known.gpus,
        reason=_reason(queue, pair, state),
        exit_code=_exit_code(pair, state, native),
        signal=None if states.base_word(native) in _INVENTED_CODE else signal_of(pair),
        submitted_at=instant(life.submit),
        started_at=instant(started),
        ended_at=instant(_ended(queue, account)) if over else None,
        start_estimate_at=instant(queue.start) if queue and waiting else None,
        elapsed_s=_elapsed(queue, account, over),
        time_limit_s=row.limit_s,
        nodes=row.nodes,
        dependency=_dependency(queue, account),
        restarts=restarts if restarts is not None else known.restarts,
        log_path=(queue.log_path if queue else None) or known.log_path,
        err_path=(queue.err_path if queue else None) or known.err_path,
        held=states.is_held(native, queue.reason if queue else None),
        suspended=states.stands_still(native),
    )


def _name(queue: QueueRow | None, account: AccountRow | None) -> str | None:
    if queue is not None:
        return title(queue.name)
    # A job that has just begun is called `allocation` in accounting 22.05 for up to 5 s.
    if account is None or (account.name == b"allocation" and account.end is None):
        return None
    return visible(readable(account.name)) or None


def _started(queue: QueueRow | None, account: AccountRow | None) -> int | None:
    if account and account.end is not None:
        never = account.nodes is None and not account.elapsed_s
        return None if never else account.start
    return queue.start if queue else account.start if account else None


def _ended(queue: QueueRow | None, account: AccountRow | None) -> int | None:
    if account and account.end is not None:
        return account.end
    return queue.end if queue else None


def _elapsed(queue: QueueRow | None, account: AccountRow | None, over: bool) -> int | None:
    if over and account and account.end is not None:
        return account.elapsed_s
    return queue.elapsed_s if queue else account.elapsed_s if account else None


def _dependency(queue: QueueRow | None, account: AccountRow | None) -> str | None:
    """The queue's text while the dependency stands, else the one it was submitted with."""
    live = queue.dependency if queue else None
    return live or (account.dependency if account else None)


def _exit(queue: QueueRow | None, account: AccountRow | None) -> tuple[int, int] | None:
    """scontrol's pair where it was asked: accounting before 25.11 writes 9:0 for 137:0."""
    if queue and queue.exit is not None:
        return queue.exit
    return account.exit if account else None


def _exit_code(pair: tuple[int, int] | None, state: State, native: str) -> int | None:
    """What the process returned, as far as the sources know; None where a signal ended it."""
    if pair is None or pair[1] or states.base_word(native) in _INVENTED_CODE:
        return None
    return pair[0] if state in _PROCESS_RETURNED or pair[0] else None


def _reason(queue: QueueRow | None, pair: tuple[int, int] | None, state: State) -> str | None:
    """Why it waits or how it ended.

    sacct's Reason, and that of a cancelled job everywhere, is the last pending reason, even long
    after the end: never taken.
    """
    if state not in TERMINAL:
        return queue.reason if queue else None
    if pair == _NOT_STARTED:
        return _NOT_STARTED_REASON
    if queue is None or state is State.CANCELLED or not states.is_end(queue.native):
        return None
    return queue.reason
