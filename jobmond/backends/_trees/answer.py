"""What the script about trees printed, taken apart."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jobmond.analysis.treestate import FoundEntry, FoundJob, FoundTree
from jobmond.analysis.visible import readable, visible
from jobmond.model.observation import PERMISSION, Absent, Unavailable


@dataclass(slots=True)
class _Job:
    """A job's lines so far."""

    found: FoundJob
    entries: dict[str, FoundEntry] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)

    def done(self) -> FoundJob:
        return replace(self.found, entries=tuple(self.entries.values()), gone=tuple(self.gone))


@dataclass(slots=True)
class _Tree:
    """A tree's lines so far. `whole` says that the look came to its end."""

    path: str
    now: int = 0
    jobs: list[_Job] = field(default_factory=list)
    chunks: int | None = None
    verdict: Absent | Unavailable | None = None
    whole: bool = False

    def done(self) -> FoundTree | Absent | Unavailable:
        if self.verdict is not None:
            return self.verdict
        if not self.whole or not self.now:
            return Unavailable("the look at the tree did not come to its end")
        jobs = tuple(job.done() for job in self.jobs)
        return FoundTree(self.now, jobs, self.chunks, self.path)


def trees(stdout: bytes, mark: str, paths: Sequence[str]) -> list[FoundTree | Absent | Unavailable]:
    """One answer for each of `paths`, in order; what did not arrive whole is unavailable."""
    found: list[FoundTree | Absent | Unavailable] = [
        Unavailable("nothing arrived of the tree") for _ in paths
    ]
    tree, index = _Tree(""), -1
    for words, body in _lines(stdout, mark.encode()):
        if words[0] == "tree" and len(words) > 1 and (place := _int(words[1])) is not None:
            index = place if place < len(paths) else -1
            tree = _Tree(paths[index] if index >= 0 else "")
        elif words[0] == "end" and index >= 0 and words[1:] == [str(index)]:
            found[index] = tree.done()
            index = -1
        elif (handle := _WORDS.get(words[0])) is not None and index >= 0:
            handle(tree, words[1:], body)
    return found


def _lines(stdout: bytes, mark: bytes) -> Iterator[tuple[list[str], bytes]]:
    """The words of every line of ours and what follows it, up to the next."""
    lead = mark + b" "
    pieces = (b"\n" + stdout).split(b"\n" + lead)
    for piece in pieces[1:]:
        head, _, body = piece.partition(b"\n")
        words = readable(head).split(" ")
        yield words, body


def _int(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _now(tree: _Tree, words: Sequence[str], _: bytes) -> None:
    tree.now = _int(words[0]) or 0 if words else 0


def _at(tree: _Tree, words: Sequence[str], _: bytes) -> None:
    tree.path = " ".join(words)


def _absent(tree: _Tree, _: Sequence[str], __: bytes) -> None:
    tree.verdict = Absent((visible(tree.path),))


def _late(tree: _Tree, _: Sequence[str], __: bytes) -> None:
    tree.verdict = Unavailable("budget")


def _why(tree: _Tree, words: Sequence[str], _: bytes) -> None:
    tree.verdict = Unavailable(visible(" ".join(words)) or "the file system does not answer")


def _denied(tree: _Tree, words: Sequence[str], _: bytes) -> None:
    who = visible(" ".join(words))
    tree.verdict = Unavailable(f"{PERMISSION}{who} may not list {visible(tree.path)}")


def _chunks(tree: _Tree, words: Sequence[str], _: bytes) -> None:
    count = _int(words[0]) if words else None
    tree.chunks = (tree.chunks or 0) + count if count is not None else tree.chunks


def _whole(tree: _Tree, _: Sequence[str], __: bytes) -> None:
    tree.whole = True


def _same(tree: _Tree, words: Sequence[str], _: bytes) -> None:
    tree.jobs.append(_Job(FoundJob(" ".join(words[1:]), words[0] if words else "", same=True)))


def _job(tree: _Tree, words: Sequence[str], _: bytes) -> None:
    """`key`, when its result was written (empty without one), path."""
    if len(words) > 2:
        written = _int(words[1]) or 0
        tree.jobs.append(_Job(FoundJob(" ".join(words[2:]), words[0], written_at=written)))


def _in_job(
    handle: Callable[[_Job, Sequence[str], bytes], None],
) -> Callable[[_Tree, Sequence[str], bytes], None]:
    def handled(tree: _Tree, words: Sequence[str], body: bytes) -> None:
        if tree.jobs:
            handle(tree.jobs[-1], words, body)

    return handled


def _count(job: _Job, words: Sequence[str], _: bytes) -> None:
    job.found = replace(job.found, count=_int(words[0]) or 0 if words else 0)


def _later(job: _Job, words: Sequence[str], _: bytes) -> None:
    job.found = replace(job.found, later=_int(words[0]) or 0 if words else 0)


def _gone(job: _Job, words: Sequence[str], _: bytes) -> None:
    job.gone.append(" ".join(words))


def _open(job: _Job, words: Sequence[str], _: bytes) -> None:
    _entry(job, words, 0, None)


def _root(job: _Job, _: Sequence[str], body: bytes) -> None:
    job.found = replace(job.found, root=parsed(body))


def _trial(job: _Job, words: Sequence[str], body: bytes) -> None:
    at = _int(words[2]) if len(words) > 3 else None
    if at is not None:
        _entry(job, [*words[:2], *words[3:]], at, parsed(body))


def _entry(job: _Job, words: Sequence[str], at: int, document: Any) -> None:
    if len(words) < 3:
        return
    mtime, stamp, name = _int(words[0]), words[1], " ".join(words[2:])
    if mtime is not None and name:
        job.entries[name] = FoundEntry(name, mtime, stamp, at, document)


def _steps(job: _Job, words: Sequence[str], body: bytes) -> None:
    name = " ".join(words)
    if name in job.entries:
        job.entries[name] = replace(job.entries[name], steps=parsed(body))


def _episodes(job: _Job, words: Sequence[str], _: bytes) -> None:
    name = " ".join(words[1:])
    if name in job.entries:
        job.entries[name] = replace(job.entries[name], episodes=_int(words[0]) or 0)


def parsed(body: bytes) -> Any:
    """The document in the first line; None where there is none."""
    try:
        return json.loads(body.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None


_WORDS: dict[str, Callable[[_Tree, Sequence[str], bytes], None]] = {
    "now": _now,
    "at": _at,
    "absent": _absent,
    "late": _late,
    "why": _why,
    "denied": _denied,
    "chunks": _chunks,
    "whole": _whole,
    "same": _same,
    "job": _job,
    "C": _in_job(_count),
    "L": _in_job(_later),
    "G": _in_job(_gone),
    "O": _in_job(_open),
    "root": _in_job(_root),
    "trial": _in_job(_trial),
    "steps": _in_job(_steps),
    "episodes": _in_job(_episodes),
}
