"""Where a job's checkpoints and results may be, when to look, and what is kept of a look.

Source: OpenThoughts-Agent, monitor-job-tables notes (banked steps come from durable evidence, over
every place a launcher may have written to; a completed SFT run is checked once against its own
record).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from jobmond.analysis.banked import banked
from jobmond.analysis.visible import readable
from jobmond.model.job import Job
from jobmond.model.observation import LogTail, NotApplicable, Read, Reading, Unavailable
from jobmond.model.state import Bucket, State
from jobmond.model.trials import Bank, OutputAsk, Outputs, Work

_UNREAD = NotApplicable()
OUTPUT_LABEL = "output="
EVERY = timedelta(hours=1)  # where no log says that something new is there
MOST, _NAMED = 24, 6
_KEPT = 20  # steps
_STEP_FOLDER = re.compile(
    r"([^\s'\"=:,()\[\]]{1,400})/(?:global_step_?|checkpoint-|iter_|step_)\d{1,12}(?![\w.-])"
)
_STEP_NAME = re.compile(rb"/(?:global_step_?|checkpoint-|iter_|step_)\d")  # at little cost
_OPTION = re.compile(
    r"(?:output[_-]dir|ckpt_path|checkpoint_dir|default_local_dir|save_dir|output_path)[= ]+"
    r"['\"]?([^\s'\"]{1,400})"
)
_BELOW = ("{0}", "{0}/checkpoints", "{0}/{0}/checkpoints", "checkpoints/{0}", "outputs/{0}")


def wanted(job: Job, *, ended: bool, now: datetime) -> str:
    """What to look for now: `b`anked steps, `c`ompletion, `s`cores; nothing is the empty word."""
    if job.stale:
        return ""
    over = ended and job.state is State.COMPLETED
    if job.bucket is Bucket.EVAL:
        return "s" if over else ""
    if job.bucket not in (Bucket.RL, Bucket.SFT):
        return ""
    want = "c" if over and job.bucket is Bucket.SFT else ""
    return want + ("b" if ended or _due(job, now) else "")


def _due(job: Job, now: datetime) -> bool:
    training = job.training
    if job.state is not State.RUNNING or training is None or training.step is None:
        return False
    bank = job.work.bank if job.work is not None else None
    if bank is None or bank.read_at is None or now - bank.read_at >= EVERY:
        return True
    return any(step > (bank.newest or -1) for step in training.checkpoints[-1:])


def output_places(
    job: Job, tops: Sequence[str], log: Reading[LogTail]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Folders to look at, the surest first, and those of them that are this job's by its own
    words. A folder that is merely the work directory may hold another run's, and is left out.
    """
    folder = job.facts.workdir
    bank = job.work.bank if job.work is not None else None
    said = [
        label.removeprefix(OUTPUT_LABEL) for label in job.labels if label.startswith(OUTPUT_LABEL)
    ]
    for text in (job.facts.submit_line, job.facts.command):
        said += _OPTION.findall(text or "")
    said += bank.folders if bank is not None else ()
    said += reversed(_in_log(log))
    own = [path for one in said if (path := _below(folder, one))]
    names = [n for n in dict.fromkeys((job.name, job.run)) if n and "/" not in n and n[0] != "."]
    work = [folder] if folder else []
    guessed = [
        _below(top, below.replace("{0}", name))
        for top in (*tops, *work)
        for name in names
        for below in _BELOW
    ]
    named = tuple(dict.fromkeys(filter(_usable, own)))[:_NAMED]
    whole = [*named, *(f"{one.rstrip('/')}/checkpoints" for one in named), *guessed]
    return tuple(dict.fromkeys(filter(_usable, whole)))[:MOST], named


def _in_log(log: Reading[LogTail]) -> list[str]:
    """Folders in which the log says that steps were saved, in its order."""
    if not isinstance(log, Read):
        return []
    news = log.value.news
    pieces = [segment.raw for segment in news.segments] if news is not None else []
    lines = (raw[:4000] for raw in (*pieces, *log.value.tail.splitlines()))
    texts = (readable(raw) for raw in lines if _STEP_NAME.search(raw))
    return list(dict.fromkeys(found for text in texts for found in _STEP_FOLDER.findall(text)))


def _below(folder: str | None, path: str) -> str:
    if path.startswith("/"):
        return path.rstrip("/")
    return f"{folder.rstrip('/')}/{path.removeprefix('./').rstrip('/')}" if folder else ""


def _usable(path: str) -> bool:
    return path.startswith("/") and path != "/" and not any(c in path for c in "\n\0")


def with_outputs(job: Job, ask: OutputAsk, reading: Reading[Outputs], *, now: datetime) -> Job:
    """`job` with what a look at its output gave; one that failed leaves what was known."""
    work = job.work or Work()
    before = work.bank or Bank()
    if isinstance(reading, Unavailable):
        if "b" not in ask.want:
            return job
        return replace(job, work=replace(work, bank=replace(before, error=reading.why)))
    if not isinstance(reading, Read):
        return job
    found = reading.value
    if found.scores:
        work = replace(work, scores=found.scores)
    if "b" in ask.want:
        banks = banked(found.places)
        step = banks.step
        bank = Bank(
            step=step,
            steps=banks.complete[-_KEPT:],
            unfinished=banks.unfinished[-_KEPT:],
            folder=banks.paths[step] if step is not None else None,
            folders=ask.named,
            read_at=now,
        )
        work = replace(work, bank=bank)
    return replace(job, work=work) if work != (job.work or Work()) else job


def saved_steps(job: Job) -> tuple[int, ...]:
    """Steps that can be gone back to: what lies in the folders, else what the log names."""
    bank = job.work.bank if job.work is not None else None
    if bank is not None and bank.steps:
        return bank.steps
    return job.training.checkpoints if job.training is not None else ()


def asks(
    jobs: Iterable[tuple[Job, bool]],
    tops: Sequence[str],
    logs: Mapping[str, Reading[LogTail]],
    *,
    now: datetime,
) -> list[OutputAsk]:
    """What to look at; with each job whether it ended in this sweep."""
    found = []
    for job, ended in jobs:
        want = wanted(job, ended=ended, now=now)
        places, named = (
            output_places(job, tops, logs.get(job.native_id, _UNREAD)) if want else ((), ())
        )
        if places:
            found.append(OutputAsk(job.native_id, want, places, named))
    return found
