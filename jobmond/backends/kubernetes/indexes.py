"""The parts of an indexed Job. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from jobmond.backends.kubernetes.pods import doing
from jobmond.backends.kubernetes.records import JobRecord, Pod, Unreadable
from jobmond.model.observation import TaskCounts
from jobmond.model.state import State

_NAMED = 10


@dataclass(frozen=True, slots=True)
class Spans:
    """Indexes as the API writes them: rising, without overlap, `0,2-5`."""

    spans: tuple[range, ...]

    def __len__(self) -> int:
        return sum(map(len, self.spans))

    def __contains__(self, index: int) -> bool:
        at = bisect_right(self.spans, index, key=lambda span: span.start)
        return at > 0 and index in self.spans[at - 1]

    def first(self, count: int) -> list[int]:
        """The lowest of them."""
        return [index for span in self.spans[:count] for index in span[:count]][:count]


def spans(text: str) -> Spans:
    """Raises Unreadable."""
    found = []
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        if not (
            first.isdecimal()
            and (last.isdecimal() or not dash)
            and max(len(first), len(last)) <= 10
        ):
            raise Unreadable(f"indexes {text[:80]!r}")
        found.append(range(int(first), int(last or first) + 1))
    return Spans(tuple(found))


def tasks(job: JobRecord, pods: Sequence[Pod]) -> TaskCounts | None:
    """How many indexes are where; None for a Job whose parts have no names. Raises Unreadable."""
    if not job.indexed or job.completions is None:
        return None
    done, bad = spans(job.done_indexes), spans(job.bad_indexes)
    running = {
        index
        for pod in pods
        if pod.live
        and (index := index_of(pod)) is not None
        and doing(pod).state is State.RUNNING
        and index not in done
        and index not in bad
    }
    counts = {
        State.COMPLETED: len(done),
        State.FAILED: len(bad),
        State.RUNNING: len(running),
        State.PENDING: max(0, job.completions - len(done) - len(bad) - len(running)),
    }
    if job.holds("Failed"):
        # What had not ended by then was ended with the Job, or never began.
        counts[State.CANCELLED] = counts.pop(State.RUNNING) + counts.pop(State.PENDING)
    by_state = {state: count for state, count in counts.items() if count}
    return TaskCounts(job.completions, by_state, failed=tuple(map(str, bad.first(_NAMED))))


def index_of(pod: Pod) -> int | None:
    """Which part of an indexed Job the pod is."""
    text = pod.index or ""
    return int(text) if text.isdecimal() and len(text) < 12 else None
