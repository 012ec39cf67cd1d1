"""All families in the order in which they are asked, and the way to ask them quickly."""

from jobmond.analysis.faults import (
    access,
    benign,
    collectives,
    container,
    engines,
    evaluation,
    files,
    gpu,
    memory,
    native,
    network,
    python,
    ray,
    scheduler,
    settings,
    training,
)
from jobmond.analysis.faults.fault import Fault, Role, Scope

# The first entry that matches stands: the outer world before the program, what is benign before
# what is not, the specific before the general.
FAULTS: tuple[Fault, ...] = (
    *scheduler.FAULTS,
    *benign.FAULTS,
    *memory.FAULTS,
    *collectives.FAULTS,
    *access.FAULTS,
    *container.FAULTS,
    *training.FAULTS,
    *files.FAULTS,
    *gpu.FAULTS,
    *engines.FAULTS,
    *ray.FAULTS,
    *settings.FAULTS,
    *evaluation.FAULTS,
    *network.FAULTS,
    *native.FAULTS,
    *python.FAULTS,
)
BY_ID = {fault.id: fault for fault in FAULTS}
GENERIC = BY_ID["python-exception"]

# Fixed strings, lower case, one of which stands in every line outside of tracebacks that can
# matter: few enough to look for each of them in a whole file, rare enough in healthy ones.
TRIGGERS: tuple[str, ...] = (
    "error", "fail", "xception", "traceback", "kill", "abort", "segmentation f", "segfault",
    "died", "dead", "denied", "refused", "timed out", "timing out", "timeout", "exit", "signal",
    "sigterm", "sigsegv", "sigbus", "terminat", "cancelled", "oom", "of memory", "nan",
    "no space", "quota", "not found", "no such", "could not", "nvrm: xid", "preempt", "evict",
    "assert", "due to ", "walltime", "runlimit", "memlimit", "never", "no module", "net/ib",
    "are available", "duplicate gpu", "nodenot", "nodelost", "instruction", "free()", "fatal",
    "watchdog", "in use", "lost", "==> ", ".log =", ".out =", ".log -",
)  # fmt: skip

# What is searched for (`grep -abF`, on the far side where there is one) in a log that is too large
# to be read whole: around these lines stands whatever decides. Chosen for what they cost as well:
# grep passes faster over a needle that begins with a rare letter.
FAR_NEEDLES: tuple[bytes, ...] = (
    b"Traceback (most", b"Error", b"CANCELLED AT", b"OOM", b"NVRM: Xid", b"Watchdog caught",
    b"hit an exception", b"Segmentation f", b"Killed", b"No space left", b"quota exceeded",
    b"Permission denied", b"nan", b"NaN", b"NCCL WARN", b"slurmstepd: ", b"srun: error", b"SIG",
    b"EngineCore enc", b"worker died", b"Assertion `", b"Terminated",
    b"Aborted", b"Bus error",
)  # fmt: skip

# (needle, place of its entry), in the order of the entries.
_LINE_NEEDLES = tuple(
    (needle, place)
    for place, fault in enumerate(FAULTS)
    if fault.scope is not Scope.EXCEPTION
    for needle in fault.needles
)
_EXCEPTION_FAULTS = tuple(
    fault for fault in FAULTS if fault.scope is not Scope.LINE and fault is not GENERIC
)


def match_exception(text: str) -> Fault:
    """The first entry that an exception (`Type: message`) matches."""
    for fault in _EXCEPTION_FAULTS:
        if fault.matches(text, exception=True):
            return fault
    return GENERIC


def match_line(text: str) -> tuple[Fault | None, bool]:
    """The first entry that a line outside of tracebacks matches, and whether it was close.

    Not close means that no needle stands in it. Needles hold no digits, so that lines which
    differ in numbers only are equally far.
    """
    asked, close = -1, False
    for needle, place in _LINE_NEEDLES:
        if place == asked or needle not in text:
            continue
        asked, close = place, True
        fault = FAULTS[place]
        if fault.pattern is None or fault.pattern.search(text):
            return fault, True
    return None, close


def triggered(text: str) -> bool:
    """Whether a trigger stands in `text`."""
    low = text.lower()
    for trigger in TRIGGERS:  # noqa: SIM110 (a generator takes twice as long)
        if trigger in low:
            return True
    return False


def advice(fault_id: str, cause: str) -> str:
    """What to do next; for an id that the catalogue does not know, what its cause asks for."""
    fault = BY_ID.get(fault_id)
    if fault is not None and fault.role is not Role.BENIGN:
        return fault.advice
    return next((each.advice for each in FAULTS if each.cause == cause), GENERIC.advice)
