"""Python tracebacks in a log, whole, whoever printed them and through whatever prefix."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobmond.analysis.loglines import Line

_HEADER = "Traceback (most recent call last):"
_FRAME = '  File "'
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
# What launchers and Ray put before each line: `[rank3]: `, `[n51:2]:`, `(Worker pid=7, ip=…) `,
# srun's `3: `.
_PREFIX = re.compile(
    r"(?:\[[A-Za-z][\w.-]{0,60}(?::\d{1,4})?\]:? ?"
    r"|\((?:[\w.:<>-]{1,80}(?: [\w.:<>-]{1,40})? )?(?:pid=\d{1,9}|raylet)(?:, ip=[\w.:]{1,45})?\) ?"
    r"|(?:stderr|stdout): ?|\d{1,5}: )*$"
)
_EXCEPTION = re.compile(
    r"(?!(?:INFO|WARNING|ERROR|DEBUG|CRITICAL|NOTE|Note|[EWIF])\b)"
    r"(?:(?:[A-Za-z_]\w{0,80}\.){1,12}\w{1,80}|[A-Z_]\w{0,80}|\w{0,80}[Ee]rror)(?:\(\w{1,80}\))?"
    r"(?::(?: .*)?)?$"
)
_HARMLESS_BEFORE = ("Exception ignored in", "--- Logging error ---")
_SURVIVED_BEFORE = ("Exception in thread", "Task exception was never retrieved", "future: <Task")
_LOOKAHEAD = 400  # lines after a header in which its end is looked for
_FOREIGN = 6  # lines of other output tolerated inside a block without prefix


@dataclass(frozen=True, slots=True)
class Traceback:
    """One block, with the blocks chained to it.

    `first` and `last` are indexes of its first and last line, `at` of the exception that began
    the chain (for an exception that Ray carries over: of the innermost). `exception` is that
    line without prefix, None where the log ends before it. `ends` says that the interpreter
    gives up after such a block, as far as the block can tell.
    """

    first: int
    last: int
    at: int
    texts: tuple[str, ...]
    exception: str | None
    ends: bool


def tracebacks(lines: Sequence[Line], *, cut: bool = False) -> Iterator[Traceback]:
    """Every block that begins in `lines`, in order, harmless ones left out.

    With `cut` the first lines may be the rest of a block whose header is missing.
    """
    taken: set[int] = set()
    if cut:
        yield from _headless(lines, taken)
    for index, line in enumerate(lines):
        if _HEADER not in line.text or index in taken:
            continue
        block = _block(lines, index, taken)
        if block and not _preceded(lines, index, _HARMLESS_BEFORE):
            yield block


def _block(lines: Sequence[Line], index: int, taken: set[int]) -> Traceback | None:
    text = lines[index].text
    before, _, after = text.rpartition(_HEADER)
    if after.strip():
        return None
    if before.endswith("+ Exception Group "):
        return _group(lines, index, taken)
    # Prefixes are short; what stands further left is a progress bar the header was glued to.
    found = _PREFIX.search(before[-200:])
    for prefix in dict.fromkeys((found[0] if found else "", "")):
        walk = _Walk(lines, prefix, index + 1)
        if walk.run():
            taken.update(walk.headers)
            ends = not _preceded(lines, index, _SURVIVED_BEFORE)
            return walk.result(first=index, head=prefix + _HEADER, ends=ends)
    return None


class _Walk:
    """Follows one block from the line after its header."""

    def __init__(self, lines: Sequence[Line], prefix: str, start: int) -> None:
        self._lines = lines
        self._prefix = prefix
        self._start = start
        self._frames = 0
        self._foreign = 0
        self._root: int | None = None  # where the first exception of the chain is
        self._closed = False  # an exception line ended the frames
        self._chained = False  # a chain phrase was read: a header may follow
        self._texts: list[str] = []
        self._blank = 0
        self.last = start - 1
        self.headers: list[int] = []

    def run(self) -> bool:
        stop = min(len(self._lines), self._start + _LOOKAHEAD)
        for index in range(self._start, stop):
            text = self._lines[index].text
            rest = self._rest(text)
            if rest is None:
                continue
            if not self._step(index, rest):
                break
        return self._frames > 0

    def result(self, *, first: int, head: str | None, ends: bool) -> Traceback:
        texts = ([head] if head else []) + self._texts
        at = first if self._root is None else self._root
        said = None if self._root is None else self._lines[at].text[len(self._prefix) :]
        return Traceback(first, self.last, at, tuple(texts), said, ends)

    def _rest(self, text: str) -> str | None:
        """The line without prefix; None where it belongs to somebody else."""
        if text.startswith(self._prefix):
            return text[len(self._prefix) :]
        return "" if text == self._prefix.rstrip() else None

    def _step(self, index: int, rest: str) -> bool:
        if not rest:
            self._blank += 1
            return self._closed and self._blank <= 3
        if rest.startswith(_FRAME):
            self._frames += 1
            self._closed = False
            return self._take(index, rest)
        if not self._frames:
            return False
        return self._after_exception(index, rest) if self._closed else self._inside(index, rest)

    def _inside(self, index: int, rest: str) -> bool:
        if rest.startswith("  "):
            return self._take(index, rest)
        if _EXCEPTION.match(rest[:400]):
            self._closed = True
            # Ray prints the frames of the far side below its own exception: the last one counts.
            if not self.headers:
                self._root = index
            return self._take(index, rest)
        self._foreign += 1
        return not self._prefix and self._foreign <= _FOREIGN

    def _after_exception(self, index: int, rest: str) -> bool:
        if rest in _CHAINED:
            self._chained = True
            return self._take(index, rest)
        if rest == '"""':
            return self._take(index, rest)
        if self._chained and rest == _HEADER:
            self._chained = self._closed = False
            self.headers.append(index)
            return self._take(index, rest)
        return False

    def _take(self, index: int, rest: str) -> bool:
        self._texts.extend([""] * self._blank if self._texts else [])
        self._blank = 0
        self._texts.append(self._prefix + rest)
        self.last = index
        return True


def _headless(lines: Sequence[Line], taken: set[int]) -> Iterator[Traceback]:
    for index, line in enumerate(lines[:3]):
        before, frame, _ = line.text.partition(_FRAME)
        if not frame or len(before) > 200 or not _PREFIX.fullmatch(before):
            continue
        walk = _Walk(lines, before, index)
        if walk.run():
            taken.update(walk.headers)
            yield walk.result(first=index, head=None, ends=True)
        return


def _group(lines: Sequence[Line], index: int, taken: set[int]) -> Traceback:
    """An exception group: everything is drawn to the right of `|` and `+`."""
    root: int | None = None
    last = index
    for at in range(index + 1, min(len(lines), index + _LOOKAHEAD)):
        drawn = lines[at].text.lstrip()
        if drawn[:1] not in ("|", "+") or not drawn:
            break
        last = at
        taken.add(at)
        if root is None and _EXCEPTION.match(drawn[2:402]):
            root = at
    texts = tuple(line.text for line in lines[index : last + 1])
    said = None if root is None else lines[root].text.lstrip()[2:]
    return Traceback(index, last, index if root is None else root, texts, said, ends=True)


def _preceded(lines: Sequence[Line], index: int, words: tuple[str, ...]) -> bool:
    return any(word in line.text for line in lines[max(0, index - 2) : index] for word in words)
