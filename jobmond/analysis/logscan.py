"""What the end of a job's log shows: its last lines, its first traceback, how it ended."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from jobmond.analysis.benign import NOTHING, Benign
from jobmond.analysis.diagnoser import Diagnoser, Evidence
from jobmond.analysis.loglines import Line, clipped, lines
from jobmond.analysis.tracebacks import Traceback, tracebacks

KEPT_LINES = 60
LINE_CHARS = 1_000
BLOCK_LINES = 80


@dataclass(frozen=True, slots=True)
class Quote:
    """Something the log says, masked.

    `line` states it, `first_line` begins its block (1-based, LF only; None where only the end of
    the file was read), `offset` is the byte in the file at which `first_line` begins (None where
    the place of the window in the file is not known). `text` is the line that states it.
    """

    cause: str
    text: str
    line: int | None
    first_line: int | None
    offset: int | None
    excerpt: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """A window on a log's end.

    `last_lines` are its last lines, oldest first, safe to show. `traceback` is the first that
    can be a cause; `marks` are lines in which somebody else says how the job was ended (kernel,
    shell, scheduler), in order. `proves_failure` and `proves_end` hold the words that prove it
    to somebody who has no exit code, else None; never both. `evidence` is what the fault catalogue
    makes of the window; `parts` says what it rests on where that is more than the window.
    """

    offset: int | None
    size_bytes: int
    last_lines: tuple[str, ...] = ()
    traceback: Quote | None = None
    marks: tuple[Quote, ...] = ()
    proves_failure: str | None = None
    proves_end: str | None = None
    evidence: Evidence | None = None
    parts: str | None = None

    @property
    def last_line(self) -> str | None:
        """The last line that is not blank."""
        return next((line for line in reversed(self.last_lines) if line.strip()), None)

    @property
    def looked(self) -> str:
        """What was looked at, for a person."""
        if not self.size_bytes:
            return "an empty log"
        if self.parts:
            return self.parts
        if self.offset == 0:
            return f"the whole log of {self.size_bytes} bytes"
        where = "" if self.offset is None else f" (from byte {self.offset})"
        return f"the last {self.size_bytes} bytes of the log{where}"


# Expected in any agentic run, in any number, and never why a job failed.
_BENIGN = re.compile(
    r"AgentTimeoutError|AgentTimeout\b|ContextLengthExceeded|ContextWindowExceeded|"
    r"VLLMValidationError|maximum context length|input tokens > \d|passthrough",
    re.IGNORECASE,
)
# They report that something else failed or stopped; a cause only where nothing better is found.
_WRAPPERS = re.compile(
    r"(?:[\w.]*\.)?(?:ChildFailedError|SignalException|CalledProcessError|ProcessExitedException|"
    r"ProcessRaisedException|BrokenProcessPool|SystemExit|KeyboardInterrupt|CancelledError)\b"
)
# An exception that is no failure of the program, even as its last words.
_NO_FAILURE = re.compile(r"(?:[\w.]*\.)?(?:SystemExit|GeneratorExit|StopIteration)\b")

_SHELL = r"^(?:[\w./~+-]{1,200}: line \d+: +\d+ |zsh: |\d{1,5}: )?"
_MARKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("walltime", re.compile(r"DUE TO TIME LIMIT \*\*\*")),
    ("preempted", re.compile(r"DUE TO PREEMPTION \*\*\*")),
    ("node-failure", re.compile(r"DUE TO NODE FAILURE")),
    (
        "host-oom",
        re.compile(r"[Dd]etected \d+ oom[-_]kill event|task \d+: Out Of Memory|oom-kill:const"),
    ),
    (
        "segfault",
        re.compile(
            _SHELL + r"(?:[Ss]egmentation fault|[Bb]us error)(?: \(core dumped\))?(?:$| {2,})"
            r"|^Fatal Python error: (?:Segmentation fault|Bus error)"
        ),
    ),
    ("sigkill", re.compile(_SHELL + r"[Kk]illed(?:$| {2,})|task \d+: Killed$")),
    ("sigterm", re.compile(_SHELL + r"[Tt]erminated(?:$| {2,})|task \d+: Terminated$")),
    (
        "unknown",
        re.compile(
            _SHELL + r"Aborted(?: \(core dumped\))?(?:$| {2,})"
            r"|^Fatal Python error: |^terminate called (?:after|without)"
            r"|^srun: error: .*: task [\d,-]+: Exited with exit code [1-9]"
            r"|^make: \*\*\* .* Error \d"
        ),
    ),
)
# A log that ends in one of these says by itself that the process ended well. Deliberately few: a
# log without them proves nothing, and the job is then LOST rather than COMPLETED.
_ENDED_WELL = re.compile(
    r"\bexit(?:ed)?(?: with)?(?: (?:code|status))?[ :=]{0,3}0\.?$"
    r"|^Job '[\w-]{1,80}' succeeded$"
    r"|^={3,} (?!.*\b(?:failed|errors?)\b)[^=]*\bpassed\b[^=]* in [\d.:]+[^=]*={3,}$"
    r"|\{'train_runtime': [^{}]*\}$"
    r"|\bINFO +\| +skyrl[\w.]{0,80}:train:\d+ +- +Training done!$",
)
_TRAIN_METRICS = re.compile(r"^\*{5} train metrics \*{5}$")
_METRIC = re.compile(r"^\s+\w[\w/ ]* += +\S")
# What may follow the last words of a program without taking them back.
_AFTERMATH = re.compile(
    r"^\s*$|^wandb: |%\||^Set the environment variable HYDRA_FULL_ERROR|^[=_-]{5,}$"
    r"|^\S+ FAILED$|^(?:Failures|Root Cause \(first observed failure\)):$|^\s*<NO_OTHER_FAILURES>$"
    r"|^\[\d+\]:$|^\s{2}(?:time|host|rank|exitcode|error_file|traceback)\s*: "
    r"|^(?:CUDA|HIP) kernel errors might|^For debugging consider passing |^Compile with `TORCH_"
    r"|^[WE]\d{4} [\d:.]+ +\d+ |^srun: |^slurmstepd: |^sys:\d+: |resource_tracker\.py:\d+: "
    r"|^\s+warnings\.warn\(|^  File \"|^    |^(?:Current t|T)hread 0x|^Extension modules: "
    r"|^\[rank\d+\]:\[W"
)
_LAST_WORDS = 80  # lines from the end in which the last words are looked for


def tail_evidence(
    tail: bytes, *, at_start: bool, offset: int | None = None, benign: Benign = NOTHING
) -> Scan:
    """What the last bytes of a log show. Any bytes, cut anywhere; linear time.

    `at_start` says that `tail` is the whole file; `offset` is where it begins in the file, None
    where that is not known. What is `benign` there proves nothing.
    """
    start = 0 if at_start else offset
    read = lines(tail, torn=not at_start)
    found = list(tracebacks(read, cut=not at_start))
    found = [block for block in found if not benign.line(block.exception or "")]
    window = _Window(read, at_start, start, benign)
    failed = _last_words(read, found, benign)
    return Scan(
        offset=start,
        size_bytes=len(tail),
        last_lines=tuple(clipped(line.text, LINE_CHARS) for line in read[-KEPT_LINES:]),
        traceback=_choose(found, window),
        marks=window.marks(),
        proves_failure=failed,
        proves_end=None if failed else _good_end(read),
        evidence=_evidence(tail, start, benign),
    )


def _evidence(tail: bytes, start: int | None, benign: Benign) -> Evidence:
    diagnoser = Diagnoser(benign)
    diagnoser.feed(tail, offset=1 if start is None else start)
    return diagnoser.evidence()


@dataclass(frozen=True, slots=True)
class _Window:
    read: Sequence[Line]
    at_start: bool
    start: int | None
    benign: Benign

    def quote(self, cause: str, text: str, at: int, first: int, excerpt: Sequence[str]) -> Quote:
        head, line = self.read[first], self.read[at]
        return Quote(
            cause=cause,
            text=clipped(text, LINE_CHARS),
            line=line.number if self.at_start else None,
            first_line=head.number if self.at_start else None,
            offset=None if self.start is None else self.start + head.offset,
            excerpt=tuple(clipped(text, LINE_CHARS) for text in excerpt),
        )

    def marks(self) -> tuple[Quote, ...]:
        return tuple(
            self.quote(cause, line.text, at, at, (line.text,))
            for at, line in enumerate(self.read)
            if (cause := _mark(line.text)) and not self.benign.line(line.text)
        )


def _mark(text: str) -> str | None:
    # Such lines are short; an environment dump that quotes one is not.
    if len(text) > 400:
        return None
    return next((cause for cause, shape in _MARKS if shape.search(text)), None)


def _choose(found: Sequence[Traceback], window: _Window) -> Quote | None:
    candidates = [block for block in found if not _BENIGN.search(block.exception or "")]
    whole = [block for block in candidates if block.exception]
    real = [block for block in whole if not _WRAPPERS.match(block.exception or "")]
    block = next(iter(real or whole or candidates), None)
    if block is None:
        return None
    said = block.exception or "a traceback that the log does not finish"
    texts = block.texts
    if len(texts) > BLOCK_LINES:
        half = BLOCK_LINES // 2
        texts = (*texts[:half], f"… ({len(texts) - 2 * half} lines left out)", *texts[-half:])
    return window.quote("python-exception", said, block.at, block.first, texts)


def _last_words(read: Sequence[Line], found: Sequence[Traceback], benign: Benign) -> str | None:
    """The words at the very end that prove a failure; None where anything follows them."""
    first = max(0, len(read) - _LAST_WORDS)
    ends = {block.last: block for block in found if block.ends}
    for at in range(len(read) - 1, first - 1, -1):
        text = read[at].text
        block = ends.get(at)
        if block is not None:
            return _fatal(block)
        if benign.line(text):
            continue
        if _mark(text):
            return clipped(text.strip(), LINE_CHARS)
        if not _AFTERMATH.search(text):
            return None
    return None


def _fatal(block: Traceback) -> str | None:
    said = block.exception
    if said is None or _BENIGN.search(said) or _NO_FAILURE.match(said):
        return None
    return clipped(said, LINE_CHARS)


def _good_end(read: Sequence[Line]) -> str | None:
    """The words at the very end by which the program itself says that all is done."""
    said = [line.text for line in read if line.text.strip()][-20:]
    if not said:
        return None
    if _ENDED_WELL.search(said[-1][-400:]):
        return clipped(said[-1].strip(), LINE_CHARS)
    while said and _METRIC.match(said[-1][:400]):
        said.pop()
    return said[-1] if said and _TRAIN_METRICS.match(said[-1]) else None
