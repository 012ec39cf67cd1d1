"""Reads the output file of the experiment launcher (NeMo-Run), segment by segment.

Its own lines stand at the beginning of a line; what its jobs print has the last ten characters of
the task's name before it. Lines that rich lays out are wrapped at 80 columns, so that only those
are read that are never wrapped, or are short.
"""

import re
from collections.abc import Callable
from typing import TypeAlias

from jobmond.analysis.bars import Painted, painted
from jobmond.analysis.launcher import ENDED, LIVE
from jobmond.analysis.loglines import clipped
from jobmond.analysis.mask import mask
from jobmond.analysis.segments import bare
from jobmond.analysis.visible import visible
from jobmond.model.metrics import Memory, Segment

Found: TypeAlias = re.Match[str]

NEEDLES = (
    b"with id: ", b"slurm_config: ", b"Launching job ", b"Error running job ", b"://nemo_run/",
    b"[SLURM] Job ", b"Experiment Status for ", b"Task ", b"- Status: ", b"- Job id: ",
    b" Directory: ", b" finished: ", b"pyxis: ", b"Inserted ", b"%|", b"TensorQuantizers found",
    b"exported to: ", b"export_path: ", b"<REPORT>", b"Unexpected error: ", b"Detaching from ",
    b"sacct has been unreachable", b"Dry run for ", b"allow_to_fail=",
)  # fmt: skip

_PREFIX = re.compile(r"(?P<task>[^\s/]{1,10})/(?P<replica>\d{1,4}) ")
_STAMP = r"(?:\[\d\d:\d\d:\d\d\]\s+|\s{11})?(?:(?:INFO|WARNING|ERROR)\s+)?"
_ENTERED = re.compile(
    r"[^\s\w]{0,80} ?Entering Experiment \S{1,80} with id: (?P<id>[\w.-]{1,120})(?=\s|$)"
)
_PLANNED = re.compile(
    r"job \S{1,200} task (?P<n>\d{1,4}) slurm_config: "
    r"(?:SlurmConfig\(host='(?P<host>[^']{1,255})')?"
)
_REFUSED = re.compile(_STAMP + r"Error running job (?P<name>[^\s:]{1,200}):")
_APP = re.compile(r"\s*slurm(?:_tunnel)?://nemo_run/(?P<id>\d{1,12})(?=\s|$)")
_SLURM = re.compile(r"\[SLURM\] Job (?P<id>\d{1,12}) - State: (?P<state>[A-Z_]{1,40}),")
_STATUS_OF = re.compile(r"Experiment Status for (?P<id>[\w.-]{1,120})$")
_TASK = re.compile(r"Task (?P<n>\d{1,4}): (?P<name>\S{1,200})$")
_STATUS = re.compile(r"- Status: (?P<value>[A-Z_]{1,40})$")
_JOB_ID = re.compile(r"- Job id: (?P<id>\d{1,12})$")
_FOLDER = re.compile(r"- Remote Directory: (?P<value>/[^\x00-\x1f\x7f]{1,2000})$")
_FINISHED = re.compile(_STAMP + r"Job (?P<id>\d{1,12}) finished: (?P<state>[A-Z]{1,20})(?=\s|$)")
_IMPORT = re.compile(r"pyxis: (?P<how>importing|imported) docker image: (?P<image>\S{1,300})")
_NO_IMPORT = re.compile(r".{0,80}pyxis: (?:failed to import docker image|couldn't start container)")
_PHASE = re.compile(
    r"(?P<begins>Inserted \d{1,9} quantizers)|\d{1,9} TensorQuantizers found in model"
)
_EXPORTED = re.compile(r".{0,300}?(?:exported to|export_path): (?P<path>/\S{1,1000}?)\.?(?=\s|$)")
_REPORT = re.compile(r".{0,80}?<REPORT>(?P<verdict>PASS|FAIL): (?P<text>.{0,400}?)</REPORT>")
_ERROR = re.compile(r"Unexpected error: (?P<text>.{1,600})")
_MAY_FAIL = re.compile(r"│[^│]{0,40}│\s{1,40}allow_to_fail=True\b")
_DRY = re.compile(r"Dry run for (?!task )(?P<name>\S{1,80}):$")
_DETACHED = re.compile(r"[^\s\w]{0,80} ?Detaching from ")
_UNREACHABLE = re.compile(_STAMP + r"sacct has been unreachable")
_CALIBRATING = re.compile(r"(?:MSE weight |Layerwise )?[Cc]alibrat(?:ing|ion)\b")

_REPORTS = 20
_JOBS = 200


def take(segment: Segment, memory: Memory) -> None:
    """Fold one segment in. What is cut off in the middle of its words is left alone."""
    if not any(needle in segment.raw for needle in NEEDLES):
        return
    text = bare(segment.raw)
    prefix = _PREFIX.match(text)
    if prefix is not None:
        _job_line(text[prefix.end() :], segment.closed, memory)
    elif segment.closed or _whole_enough(text):
        _first(_OWN, text.rstrip(), memory)


def printed_by_a_job(line: str) -> bool:
    """Whether a line of an output file is what one of the launcher's jobs printed."""
    return _PREFIX.match(line) is not None


def _first(table: "tuple[Row, ...]", text: str, memory: Memory) -> None:
    """What the first pattern that is found makes of it."""
    for pattern, note in table:
        found = pattern.match(text)
        if found is not None:
            note(found, memory)
            return


def _whole_enough(text: str) -> bool:
    """Whether an open line has all its words: blanks, or the next column, follow them."""
    found = _FINISHED.match(text)
    if found is not None:
        return found["state"] in ENDED
    return text.startswith("Unexpected error: ")


def _entered(found: Found, memory: Memory) -> None:
    if memory.get("experiment") not in (None, found["id"]):
        memory.clear()  # launched again into the same file
    memory.pop("error", None)
    memory["experiment"] = found["id"]


def _planned(found: Found, memory: Memory) -> None:
    memory["planned"] = max(memory.get("planned", 0), int(found["n"]) + 1)
    if found["host"]:
        memory["host"] = visible(found["host"])


def _refused(found: Found, memory: Memory) -> None:
    memory["error"] = f"{visible(found['name'])} could not be submitted"


def _error(found: Found, memory: Memory) -> None:
    memory["error"] = visible(mask(clipped(found["text"].strip(), 300)))


def _said(name: str) -> "Note":
    def note(_: Found, memory: Memory) -> None:
        memory[name] = True

    return note


def _task(found: Found, memory: Memory) -> None:
    memory["at"] = at = str(int(found["n"]))
    tasks = memory.setdefault("tasks", {})
    if len(tasks) < _JOBS or at in tasks:
        tasks.setdefault(at, {})["name"] = visible(found["name"])


def _status_of(found: Found, memory: Memory) -> None:
    memory.setdefault("experiment", found["id"])
    memory.pop("at", None)


def _in_task(name: str) -> "Note":
    def note(found: Found, memory: Memory) -> None:
        task = memory.get("tasks", {}).get(memory.get("at"))
        if task is not None:
            task[name] = found["value"]

    return note


def _job_id(found: Found, memory: Memory) -> None:
    task = memory.get("tasks", {}).get(memory.get("at"))
    if task is not None:
        task["job"] = found["id"]
        _job(memory, found["id"])
        _word_about(memory, found["id"], task.get("status", ""))


def _app(found: Found, memory: Memory) -> None:
    _job(memory, found["id"])


def _word(found: Found, memory: Memory) -> None:
    _word_about(memory, found["id"], found["state"])


def _ended(found: Found, memory: Memory) -> None:
    if found["state"] in ENDED:
        _word_about(memory, found["id"], found["state"])


def _job(memory: Memory, job: str) -> None:
    jobs = memory.setdefault("jobs", {})
    if len(jobs) < _JOBS:
        jobs.setdefault(job, None)


def _word_about(memory: Memory, job: str, word: str) -> None:
    """The launcher's word; after an end no other counts."""
    jobs = memory.setdefault("jobs", {})
    if jobs.get(job) in ENDED or (word not in ENDED and word not in LIVE):
        return
    if len(jobs) < _JOBS or job in jobs:
        jobs[job] = word


def _job_line(text: str, closed: bool, memory: Memory) -> None:
    memory["spoken"] = True
    bar = painted(text)
    if bar is not None:
        _bar(bar, memory)
    elif closed:
        _first(_PRINTED, text, memory)


def _bar(bar: Painted, memory: Memory) -> None:
    """The calibration's bar has no label in some versions; it stands between two other lines."""
    if bar.desc:
        memory["calibrating"] = _CALIBRATING.match(bar.desc) is not None
    if memory.get("calibrating"):
        memory["bar"] = [bar.n, bar.total]


def _import(found: Found, memory: Memory) -> None:
    memory["container"], memory["image"] = found["how"], visible(found["image"])


def _no_import(_: Found, memory: Memory) -> None:
    memory["container"] = "failed"


def _calibrated(found: Found, memory: Memory) -> None:
    memory["calibrating"] = found["begins"] is not None


def _exported(found: Found, memory: Memory) -> None:
    memory["calibrating"], memory["exported"] = False, visible(found["path"])


def _report(found: Found, memory: Memory) -> None:
    told = [found["verdict"], visible(mask(found["text"]))]
    memory["reports"] = [*memory.get("reports", ()), told][-_REPORTS:]


Note: TypeAlias = Callable[[Found, Memory], None]
Row: TypeAlias = tuple[re.Pattern[str], Note]

_OWN: tuple[Row, ...] = (
    (_ENTERED, _entered),
    (_PLANNED, _planned),
    (_MAY_FAIL, _said("may_fail")),
    (_REFUSED, _refused),
    (_APP, _app),
    (_ERROR, _error),
    (_DRY, _said("dry")),
    (_DETACHED, _said("detached")),
    (_UNREACHABLE, _said("gave_up")),
    (_TASK, _task),
    (_STATUS_OF, _status_of),
    (_SLURM, _word),
    (_FINISHED, _ended),
    (_STATUS, _in_task("status")),
    (_JOB_ID, _job_id),
    (_FOLDER, _in_task("remote")),
)
_PRINTED: tuple[Row, ...] = (
    (_IMPORT, _import),
    (_NO_IMPORT, _no_import),
    (_PHASE, _calibrated),
    (_REPORT, _report),
    (_EXPORTED, _exported),
)
