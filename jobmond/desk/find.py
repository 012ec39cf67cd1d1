"""Which job a person's word means. Pure."""

from collections.abc import Callable, Iterable, Sequence

from jobmond.desk.refusals import AmbiguousJob, UnknownJob, listed, nearest, quoted
from jobmond.model.job import Job


def the_job(word: str, found: Sequence[Job], known: Callable[[], Iterable[Job]]) -> Job:
    """The job that `word` (a ref, `ref@birth`, a bare native id, a name) means among `found`.

    The newest incarnation owns its ref. A word that several refs answer to means the only one of
    them that is still tracked, or, where none is and all belong to one run, its newest life.

    `known` gives the jobs whose nearest word is offered when nothing was found.

    Raises:
        UnknownJob: nothing answers, or more than one does; candidates or the nearest are named.
    """
    best = _closest(word, found)
    newest: dict[str, Job] = {}
    for job in sorted(best, key=lambda j: (j.tracked, j.id)):
        newest[job.ref] = job
    candidates = list(newest.values())
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        words = {w for job in known() for w in (job.ref, job.native_id, job.name)}
        raise UnknownJob(f"unknown job {quoted(word)}{nearest(word, sorted(words))}")
    tracked = [job for job in candidates if job.tracked]
    if len(tracked) == 1:
        return tracked[0]
    if not tracked and len({(job.cluster, job.run) for job in candidates}) == 1:
        return max(candidates, key=lambda job: (job.life, job.id))
    raise AmbiguousJob(f"{quoted(word)} is ambiguous: {listed(sorted(newest))}")


def _closest(word: str, found: Sequence[Job]) -> Sequence[Job]:
    """The matches of the most exact sort: incarnation, ref, native id, then names."""
    tests: tuple[Callable[[Job], bool], ...] = (
        lambda job: f"{job.ref}@{job.birth}" == word,
        lambda job: job.ref == word,
        lambda job: job.native_id == word,
    )
    for test in tests:
        if exact := [job for job in found if test(job)]:
            return exact
    return found
