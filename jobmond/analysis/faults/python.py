"""Python: what cannot be imported, and exceptions that no other family knows."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

FAULTS = (
    Fault(
        id="wrapper-exception",
        cause="python-exception",
        role=Role.CONSEQUENCE,
        needles=(
            "CancelledError",
            "SystemExit",
            "GeneratorExit",
            "exited unexpectedly",
            "BrokenProcessPool",
            "StopIteration",
            "Evaluation failed!",
            "ProcessExitedException",
            "see the stack trace above",
            "See stack trace",
            "QueueShutDown",
            "ClosedResourceError",
            "EndOfStream",
            "queue.Empty",
            "ExceptionGroup",
            "Error executing job with overrides",
        ),
        pattern=re.compile(
            r"^(?:[\w.]+\.)?(?:CancelledError|SystemExit|GeneratorExit|StopIteration|BrokenProcessPool|QueueShutDown|ClosedResourceError|EndOfStream|Empty|(?:Base)?ExceptionGroup)\b|"
            r"DataLoader worker \(pid\(?s?\)? [\d, ]+\) exited unexpectedly|Error executing job with overrides"
        ),
        advice="It was said because something else ended.",
        source="Python, concurrent.futures, hydra",
        yes=(
            "asyncio.exceptions.CancelledError",
            "RuntimeError: DataLoader worker (pid(s) 2207) exited unexpectedly",
        ),
        no=("ValueError: cancelled",),
    ),
    Fault(
        id="import-error",
        cause="import-error",
        role=Role.ROOT,
        needles=(
            "ModuleNotFoundError",
            "ImportError",
            "undefined symbol",
            "cannot open shared object file",
            "GLIBC",
            "No module named",
            "DistributionNotFound",
            "PackageNotFoundError",
            "VersionConflict",
            "Failed to import ",
            "No matching distribution found",
            "that satisfies the requirement",
        ),
        pattern=re.compile(
            r"^(?:[\w.]+\.)?(?:ModuleNotFoundError|ImportError|DistributionNotFound|PackageNotFoundError|VersionConflict|ContextualVersionConflict)\b|"
            r"^(?:\w+Error: )?\S*: undefined symbol: |^\S+: error while loading shared libraries: |^OSError: .*cannot open shared object file|^RuntimeError: Failed to import |"
            r"version `GLIBC\w*[\d._]+' not found|^ERROR: (?:No matching distribution found|Could not find a version that satisfies)|^\S*python[\d.]*: (?:Error while finding module|No module named)"
        ),
        advice="Install it in the environment the job uses, or fix versions that do not fit together.",
        source="Python, ld.so",
        yes=(
            "ModuleNotFoundError: No module named 'flash_attn'",
            "ImportError: /opt/x/flash_attn_2_cuda.so: undefined symbol: _ZN3c105Error",
            "/opt/conda/bin/python: No module named torch.distributed.run",
            "python: error while loading shared libraries: libcudart.so.12: cannot open shared object file: No such file or directory",
        ),
        no=(
            "Could not load bitsandbytes native library: libcudart.so.11.0: cannot open shared object file (4-bit features disabled, continuing)",
        ),
    ),
    Fault(
        id="python-exception",
        cause="python-exception",
        role=Role.ROOT,
        needles=("",),
        scope=Scope.EXCEPTION,
        advice="Read the traceback from its last line upwards; fix, then submit again.",
        source="Python",
        yes=("ValueError: doc 7: 8193 ids but 8192 mask entries",),
        no=(),
    ),
)
