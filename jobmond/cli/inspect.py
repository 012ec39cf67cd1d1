"""`jobmonctl inspect`: read logs and folders, without daemon, database or configuration."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedReader, FileIO
from pathlib import Path
from typing import IO, Any

import click

from jobmond.analysis.choosing import choose
from jobmond.analysis.diagnoser import Diagnoser, Evidence
from jobmond.analysis.judge import LATCHED, STEPPED
from jobmond.analysis.launcher import Launched, events, launched
from jobmond.analysis.launcher_lines import printed_by_a_job
from jobmond.analysis.logscan import Scan, tail_evidence
from jobmond.analysis.logstate import LogState
from jobmond.analysis.reading import Candidate, LogReader
from jobmond.analysis.replay import Replay, standing
from jobmond.analysis.scout import Scout
from jobmond.cli.session import Session, show_json, surface
from jobmond.cli.session import show as show_lines
from jobmond.cli.sieve import Sieve, Sums, is_file
from jobmond.cli.windows import read_evidence
from jobmond.errors import ConfigError
from jobmond.model.outcome import Diagnosis
from jobmond.model.state import Bucket, State
from jobmond.registry import parsers, rules
from jobmond.reports.choose import nearest
from jobmond.reports.folder import folder_document, folder_text
from jobmond.reports.inspection import Inspection, document, text

_LAST_BYTES = 64 << 10  # in which a log says how it ended


@dataclass(frozen=True, slots=True)
class _Wish:
    """What was asked for on the command line."""

    bucket: Bucket | None
    dialect: str | None
    labels: frozenset[str]
    replayed: bool
    all_series: bool
    at: int | None


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--join", is_flag=True, help="The logs are successive lives of one run.")
@click.option(
    "--bucket",
    type=click.Choice([str(one) for one in Bucket]),
    help="Instead of what the log shows.",
)
@click.option("--dialect", metavar="D", help="The trainer's, instead of what the log shows.")
@click.option("--label", "labels", multiple=True, metavar="L", help="A label that rules obey.")
@click.option("--rules", "replayed", is_flag=True, help="Replay the rules over every step.")
@click.option("--series", type=click.Choice(["all"]), help="Every metric, every point.")
@click.option("--at", type=click.IntRange(min=0), metavar="BYTES", help="As if it ended there.")
@surface
def inspect(session: Session, paths: tuple[str, ...], join: bool, **asked: Any) -> None:
    """Read logs and folders offline: step, metrics, series, signals; trials, scores, checkpoints.

    PATH is a log, a folder (a Harbor job, results of an evaluation, checkpoints), or - for
    standard input.
    """
    wish = _Wish(
        bucket=Bucket(asked["bucket"]) if asked["bucket"] else None,
        dialect=_dialect(asked["dialect"]),
        labels=frozenset(asked["labels"]),
        replayed=asked["replayed"],
        all_series=asked["series"] == "all",
        at=asked["at"],
    )
    if join and any(Path(path).is_dir() for path in paths):
        raise ConfigError("--join is for logs; a folder is read by itself")
    for group in [paths] if join else [(path,) for path in paths]:
        if Path(group[0]).is_dir():
            _folder(session, group[0], wish)
            continue
        seen = _inspected(group, wish)
        if session.as_json:
            show_json(document(seen))
        else:
            show_lines(text(seen))


def _folder(session: Session, path: str, wish: _Wish) -> None:
    """A folder has no bytes to stop at and no steps to replay: only the bucket may be chosen."""
    from jobmond.cli.folder import read_folder

    seen = read_folder(path)
    seen = replace(seen, bucket=wish.bucket) if wish.bucket else seen
    if session.as_json:
        show_json(folder_document(seen))
    else:
        show_lines(folder_text(seen))


def _dialect(name: str | None) -> str | None:
    if name is not None and not parsers.offers(name):
        known = parsers.offered()
        raise ConfigError(f"no dialect {name!r}{nearest(name, known)}; one of {', '.join(known)}")
    return name


def _inspected(paths: Sequence[str], wish: _Wish) -> Inspection:
    replay = Replay([rules[name]() for name in STEPPED], wish.labels, wish.bucket)
    names = [wish.dialect] if wish.dialect else list(parsers)
    reader = LogReader(
        [parsers[name]() for name in names], judge=replay.judge, keep_all=wish.all_series
    )
    total, evidence = Sums(), Diagnoser().evidence()
    for place, path in enumerate(paths):
        if place:
            reader.finish()
            reader.another()
        with _opened(path) as source:
            sums, evidence = _read(source, reader, wish)  # a diagnosis speaks of the last life
        total = Sums(total.size_bytes + sums.size_bytes, total.lines + sums.lines, sums.tail)
    whole = len(paths) == 1 and total.size_bytes <= _LAST_BYTES
    scan = tail_evidence(total.tail[-_LAST_BYTES:], at_start=whole)
    return _conclusion(
        reader.finish(),
        wish,
        path=paths[-1],
        total=total,
        replay=replay,
        scan=scan,
        diagnosis=choose(evidence),
    )


def _read(source: IO[bytes], reader: LogReader, wish: _Wish) -> tuple[Sums, Evidence]:
    """One log, from beginning to end."""
    grep = shutil.which("grep")
    if is_file(source):
        scout = Scout()
        sums = Sieve(grep, scout).read(source, reader, wish.at, file=True)
        size, lines = sums.size_bytes, sums.lines
        return sums, read_evidence(source, scout, size_bytes=size, lines=lines)
    diagnoser = Diagnoser()
    sums = Sieve(grep).read(source, reader, wish.at, also=diagnoser.feed)
    return sums, diagnoser.evidence()


def _conclusion(
    found: Candidate | None,
    wish: _Wish,
    *,
    path: str,
    total: Sums,
    replay: Replay,
    scan: Scan,
    diagnosis: Diagnosis | None,
) -> Inspection:
    state = found.state if found is not None else LogState(own_steps=True)
    said = _launched(found)
    if said is not None and diagnosis is not None and not _about_its_jobs(said, diagnosis):
        diagnosis = None
    return Inspection(
        path=path,
        dialect=found.parser.name if found is not None else "unknown",
        bucket=wish.bucket or state.bucket,
        size_bytes=total.size_bytes,
        lines=total.lines,
        phase=_phase(state, scan, diagnosis) if said is None else _launched_phase(said, diagnosis),
        state=state,
        signals=standing(
            replay.firings, life=state.life, newest=state.record_step, latched=LATCHED
        ),
        firings=replay.firings if wish.replayed else None,
        diagnosis=diagnosis,
        all_series=wish.all_series,
        events=None if said is None else events(said),
    )


def _launched(found: Candidate | None) -> Launched | None:
    """What a launcher's output file tells; None for any other log."""
    if found is None or found.parser.name != "launcher":
        return None
    return launched(found.memory)


def _about_its_jobs(said: Launched, diagnosis: Diagnosis) -> bool:
    """Once a job is submitted, what breaks in the launcher itself says nothing about the job."""
    over = said.state in (State.FAILED, State.CANCELLED)
    return over or not said.jobs or any(map(printed_by_a_job, diagnosis.excerpt[:1]))


def _launched_phase(said: Launched, diagnosis: Diagnosis | None) -> str:
    """A job that failed may not have been said to be over yet; one that is over well is."""
    if said.phase != "done" and diagnosis is not None and said.jobs:
        return "failed"
    return said.phase


# Results that cannot be used of runs that came to their end.
_DIVERGED = frozenset({"nan-loss", "grad-explosion"})


def _phase(state: LogState, scan: Scan, diagnosis: Diagnosis | None) -> str:
    if state.phase == "done" or scan.proves_end:
        return "done"
    broken = diagnosis is not None and diagnosis.cause not in _DIVERGED
    return "failed" if scan.proves_failure or broken else state.phase


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == "-":
        stdin = sys.stdin.buffer
        # A redirected file can be read in windows; a pipe comes by only once.
        raw = stdin.raw if isinstance(stdin, BufferedReader) else None
        yield raw if isinstance(raw, FileIO) and is_file(raw) and stdin.tell() == 0 else stdin
        return
    try:
        with Path(path).open("rb", buffering=0) as source:
            yield source
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
