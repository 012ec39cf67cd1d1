"""Python tracebacks in a stream of log lines, whole, whoever prints them, interleaved or not."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from jobmond.analysis.pieces import Piece
from jobmond.analysis.saying import Saying

HEADER = "Traceback (most recent call last):"
_GROUP = "+ Exception Group Traceback (most recent call last):"
_AFTER = re.compile(r"\s*(?:\(RANK \d{1,6}\))?\s*$")
_FRAME = re.compile(r'(?: {1,4}|> )File "([^"]{1,400})", line \d+(?:, in (\S{1,200}))?')
# Rich draws a box around a traceback; the exception stands below it.
_BOX = re.compile(r"\s*[╭┌]─.{0,200}Traceback \(most recent call last\).{0,200}─[╮┐]?$")
_BOX_FRAME = re.compile(r"\s*[│|] {0,3}(/[^:│]{1,400}\.py):\d+ in (\S{1,200})")
_BOXED = ("│", "╭", "╰", "└", "┌", "╵")
EXCEPTION = re.compile(
    r"(?!(?:INFO|WARNING|ERROR|DEBUG|CRITICAL|NOTE|Note|[EWIF]|Killed|Terminated|Aborted|FAILED)\b)"
    r"(?:(?:[A-Za-z_]\w{0,80}\.){1,12}\w{1,80}|[A-Z_]\w{0,80}|\w{0,80}[Ee]rror)(?:\(\w{1,80}\))?"
    r"(?::(?: .*)?)?$"
)
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_LIBRARY = re.compile(
    r"site-packages|dist-packages|/lib/python\d|<frozen|/lib64/python|/torch/|^<|/bin/[\w-]+$"
)
_OURS_NOT = re.compile(r"^(?:srun|slurmstepd|sbatch|make|wandb|epilog): ?|^[WEIF]\d{4} |^[=*-]{5,}")

_LOOKAHEAD = 400  # pieces after the last line of a block in which its next is looked for
_FOREIGN = 6  # lines of other output tolerated inside a block without prefix
_FOREIGN_PREFIXED = 2
_MORE_LINES = 6  # of a message that are kept
_AFTERMATH = 14  # lines after an exception in which the words that chain it to the next may stand
_REOPENED = 60  # pieces after an exception below which Ray may print frames of the far side
_KEPT = 40  # lines at either end of a block
_LINE_CHARS = 2_000  # twice what is shown: a secret at the cut is masked before it is clipped
_SWEEP = 64


@dataclass(slots=True)
class Thrown:
    """One exception of a block: its line, the rest of its message, the innermost frame of the
    project's own code (`file:function`; of a library where there is none).
    """

    text: str
    line: int | None
    more: list[str]
    frame: str | None


@dataclass(frozen=True, slots=True)
class Block:
    """One traceback with all that is chained to it.

    `offset` is the byte at which the line of its header begins, `place` that of the header itself.
    `intro` is what stands before the header on its line. `main` says that it goes all the way up to
    a program's main module: nobody on the way caught it. `marks` counts the steps that had advanced
    when it ended. `excerpt` holds prefixes. `lead` is the
    piece before it by the same speaker.
    """

    first_line: int | None
    offset: int
    place: int
    end: int
    source: str
    intro: str
    lead: Saying | None
    main: bool
    marks: int
    thrown: tuple[Thrown, ...]
    excerpt: tuple[str, ...]


@dataclass(slots=True)
class _Open:
    piece: Piece
    source: str
    intro: str
    lead: Saying | None
    group: bool
    box: bool = False
    main: bool = False
    indent: str = ""
    head: list[str] = field(default_factory=list)
    tail: list[str] = field(default_factory=list)
    left_out: int = 0
    thrown: list[Thrown] = field(default_factory=list)
    frame: tuple[str | None, str | None] = (None, None)  # of the project, of a library
    frames: int = 0
    foreign: int = 0
    after: int = 0
    closed: bool = False
    chained: bool = False
    deadline: int = 0
    seen: int = 0  # which piece was the last of it
    end: int = 0
    marks: int = 0

    def keep(self, text: str) -> None:
        text = text[:_LINE_CHARS]
        shown = f"{self.source} {text}" if self.source else text
        if len(self.head) < _KEPT:
            self.head.append(shown)
            return
        self.tail.append(shown)
        if len(self.tail) > _KEPT:
            self.tail.pop(0)
            self.left_out += 1

    def saw(self, path: str, function: str) -> None:
        """A frame: of the project's own code or of a library."""
        self.frames += 1
        self.main = self.main or function == "<module>"
        own, library = self.frame
        name = f"{path.rpartition('/')[2]}:{function}"
        self.frame = (own, name) if _LIBRARY.search(path) else (name, library)

    def block(self) -> Block:
        gap = [f"… ({self.left_out} lines left out)"] if self.left_out else []
        return Block(
            first_line=self.piece.line,
            offset=self.piece.line_offset,
            place=self.piece.offset,
            end=self.end,
            source=self.source,
            intro=self.intro,
            lead=self.lead,
            main=self.main,
            marks=self.marks,
            thrown=tuple(self.thrown),
            excerpt=(*self.head, *gap, *self.tail),
        )


class BlockReader:
    """Feed it every piece while `open` is true, and every piece that holds a header."""

    def __init__(self) -> None:
        self._open: dict[str, list[_Open]] = {}
        self._seen = 0
        self._done: list[Block] = []
        self.marks = 0  # steps that have advanced, as far as the owner counts them

    @property
    def open(self) -> bool:
        """Whether the next piece may belong to a block."""
        return bool(self._open)

    def begins(self, said: Saying) -> bool:
        """Whether a header stands in it."""
        if HEADER in said.text:
            return not said.quoted or said.text.lstrip().startswith(_GROUP)
        return "Traceback (most" in said.text and _BOX.match(said.text) is not None

    def take(
        self, piece: Piece, said: Saying, lead: Saying | None, speaks: Callable[[], bool]
    ) -> bool:
        """Reads one piece. True where it belongs to a block.

        `speaks` tells whether the catalogue knows the line by itself: after an exception such a
        line is not taken for the rest of its message.
        """
        self._seen += 1
        if self._seen % _SWEEP == 0:
            self._sweep()
        if self.begins(said) and self._begin(piece, said, lead):
            return True
        stack = self._open.get(said.source)
        while stack:
            top = stack[-1]
            step = self._step(top, piece, said, speaks)
            if step is not None:
                if step:
                    top.deadline = self._seen + _LOOKAHEAD
                    top.seen = self._seen
                    top.end = piece.offset + len(piece.raw)
                    top.marks = self.marks
                return step
            stack.pop()
            self._emit(top)
            if not stack:
                del self._open[said.source]
        return False

    def closed(self) -> Iterator[Block]:
        """The blocks that ended since this was asked last."""
        done, self._done = self._done, []
        return iter(done)

    def close(self) -> None:
        """Whatever is open ends here."""
        for stack in self._open.values():
            for walk in stack:
                self._emit(walk)
        self._open = {}

    def _begin(self, piece: Piece, said: Saying, lead: Saying | None) -> bool:
        box = HEADER not in said.text
        before, _, after = ("", "", "") if box else said.text.rpartition(HEADER)
        group = before.endswith("+ Exception Group ")
        if _AFTER.match(after) is None or (before.strip() and not group and len(before) > 200):
            return False
        if '"' in before or "'" in before:
            return False  # a header that somebody quotes, not one that somebody prints
        stack = self._open.setdefault(said.source, [])
        top = stack[-1] if stack else None
        if top and (top.chained or (top.closed and after.strip())):
            top.chained = top.closed = False
            top.frame = (None, None)
            top.keep(said.text)
            top.deadline = self._seen + _LOOKAHEAD
            return True
        if top and top.closed:
            self._emit(stack.pop())
        walk = _Open(piece, said.source, before.strip(), lead, group, box)
        if before.strip().startswith("traceback"):
            walk.indent = "  "  # torchrun sets the traceback of a child into its summary
        walk.deadline = self._seen + _LOOKAHEAD
        walk.end = piece.offset + len(piece.raw)
        walk.marks = self.marks
        walk.keep(said.text)
        stack.append(walk)
        return True

    def _step(
        self, walk: _Open, piece: Piece, said: Saying, speaks: Callable[[], bool]
    ) -> bool | None:
        """True: taken. False: not part of the block, which goes on. None: the block is over."""
        text = said.text.removeprefix(walk.indent)
        if walk.group:
            return self._grouped(walk, piece, text)
        if walk.box and text.lstrip().startswith(_BOXED):
            return self._boxed(walk, text)
        if said.glued and not walk.closed:
            return False
        if walk.closed and not _FRAME.match(text):
            return self._after(walk, said, text, speaks)
        if walk.closed and self._seen - walk.seen > _REOPENED:
            return None  # frames of another traceback, whose header is lost
        return self._inside(walk, piece, text)

    def _grouped(self, walk: _Open, piece: Piece, text: str) -> bool | None:
        """A group of exceptions is drawn to the right of `|` and `+`."""
        drawn = text.lstrip()
        if drawn[:1] not in ("|", "+"):
            return None
        walk.foreign = 0
        self._inside(walk, piece, drawn[2:], shown=text)
        return True

    def _boxed(self, walk: _Open, text: str) -> bool:
        frame = _BOX_FRAME.match(text)
        if frame:
            walk.saw(frame[1], frame[2])
        walk.keep(text)
        return True

    def _inside(
        self, walk: _Open, piece: Piece, text: str, shown: str | None = None
    ) -> bool | None:
        frame = _FRAME.match(text)
        if frame:
            walk.closed = False
            walk.saw(frame[1], frame[2] or "?")
        elif EXCEPTION.match(text[:400]) and walk.frames:
            walk.thrown.append(
                Thrown(text[:_LINE_CHARS], piece.line, [], walk.frame[0] or walk.frame[1])
            )
            walk.closed = True
            walk.after = 0
        elif text and not text.startswith("  ") and shown is None:
            walk.foreign += 1
            allowed = _FOREIGN_PREFIXED if walk.source else _FOREIGN
            return False if walk.foreign <= allowed else None
        walk.keep(shown or text)
        return True

    def _after(
        self, walk: _Open, said: Saying, text: str, speaks: Callable[[], bool]
    ) -> bool | None:
        walk.after += 1
        if text in _CHAINED:
            walk.chained = True
            walk.keep(text)
            return True
        if walk.after > _AFTERMATH or said.level or said.glued or _OURS_NOT.match(text):
            return None
        if said.quoted or speaks():
            return False
        if text and walk.thrown and len(walk.thrown[-1].more) < _MORE_LINES:
            walk.thrown[-1].more.append(text[:_LINE_CHARS])
            walk.keep(text)
            return True
        return not text

    def _emit(self, walk: _Open) -> None:
        if walk.frames or walk.thrown:
            self._done.append(walk.block())

    def _sweep(self) -> None:
        for source in list(self._open):
            stack = self._open[source]
            for walk in [walk for walk in stack if walk.deadline < self._seen]:
                stack.remove(walk)
                self._emit(walk)
            if not stack:
                del self._open[source]
