"""Memory of the host, as programs and Ray speak of it."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

_ADVICE = "Ask for more memory, or use less of it per node (workers, batch, offloading)."

FAULTS = (
    Fault(
        id="ray-memory-monitor",
        cause="host-oom",
        role=Role.ROOT,
        needles=(
            "due to memory pressure (OOM)",
            "node running low on memory",
            "ray.exceptions.OutOfMemoryError",
            "memory monitor killed",
            "exceeds the memory usage threshold",
        ),
        pattern=re.compile(
            r"killed due to (?:the )?memory pressure|exceeds the memory usage threshold|due to the node running low on memory|"
            r"^ray\.exceptions\.OutOfMemoryError|RayTaskError\(OutOfMemoryError\).*low on memory"
        ),
        any_level=True,
        advice=_ADVICE,
        source="Ray, memory monitor of the raylet",
        yes=(
            "[2026-04-08 07:53:15,049 E 15120 15120] node_manager.cc:3065: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed",
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
        ),
        no=("(raylet) Spilled 28877 MiB, 88 objects, write throughput 1081 MiB/s.",),
    ),
    Fault(
        id="shared-memory-full",
        cause="host-oom",
        role=Role.ROOT,
        needles=(
            "Unexpected bus error encountered in worker",
            "killed by signal: Bus error",
            "insufficient shared memory",
            "out of shared memory",
        ),
        pattern=re.compile(
            r"Unexpected bus error encountered in worker|is killed by signal: Bus error|insufficient shared memory \(shm\)|"
            r"^\w*Error.* out of shared memory"
        ),
        any_level=True,
        advice="Give the container more /dev/shm (--ipc=host or --shm-size), or use fewer data workers.",
        source="PyTorch, DataLoader",
        yes=(
            "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
        ),
        no=("shared memory: 64 GB",),
    ),
    Fault(
        id="host-allocation",
        cause="host-oom",
        role=Role.ROOT,
        needles=(
            "MemoryError",
            "annot allocate memory",
            "std::bad_alloc",
            "can't allocate memory",
            "[Errno ",
            "Unable to allocate",
        ),
        pattern=re.compile(
            r"^(?:[\w.]+\.)?(?:_?Array|Arrow)?MemoryError\b|^(?:\w+Error|OSError).*(?:Errno 12\]|[Cc]annot allocate memory)|"
            r"std::bad_alloc|DefaultCPUAllocator: (?:can't|not enough)|fork: Cannot allocate memory|"
            r"^\w[\w.]*Error: Unable to allocate [\d.]+ [KMGT]iB for an array"
        ),
        advice=_ADVICE,
        source="Python, glibc, PyTorch, numpy",
        yes=(
            "MemoryError",
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 12.0 GiB for an array",
            "OSError: [Errno 12] Cannot allocate memory",
            "RuntimeError: [enforce fail at alloc_cpu.cpp:75] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 824633720832 bytes.",
        ),
        no=(
            "runner: sandbox exec of problem 512 returned MemoryError: candidate used more than 4096 MB",
        ),
    ),
    Fault(
        id="worker-killed",
        cause="sigkill",
        role=Role.SYMPTOM,
        needles=(
            "is killed by signal: Killed",
            "abruptly died during map operation",
            "terminated abruptly while the future",
            "terminated by a signal",
            "was killed (SIGKILL)",
        ),
        pattern=re.compile(
            r"DataLoader worker \(pid \d+\) is killed by signal: Killed|abruptly died during map operation|"
            r"A process in the process pool was terminated abruptly|worker .* was killed \(SIGKILL\)|"
            r"A worker process managed by the executor was unexpectedly terminated"
        ),
        weight=30,
        advice="The kernel kills workers for lack of memory: fewer workers, smaller batches, more memory.",
        source="PyTorch, datasets, concurrent.futures",
        yes=(
            "RuntimeError: DataLoader worker (pid 2207) is killed by signal: Killed.",
            "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the error, disable multiprocessing.",
        ),
        no=("RuntimeError: DataLoader worker (pid(s) 2207) exited unexpectedly",),
        scope=Scope.ANY,
    ),
)
