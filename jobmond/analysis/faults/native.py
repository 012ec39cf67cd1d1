"""Signals and crashes below Python, and the launchers' words for them."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

_SHELL = r"^(?:[\w./~+-]{1,200}: line \d+: +\d+ |zsh: |\[\d+\]\+? +|\d{1,5}: )?"
_KILL = "Find out who sent SIGKILL: the kernel for lack of memory, a person, a launcher."
_TERM = "Find out who sent SIGTERM: a person, the scheduler, a launcher after a peer."
_CRASH = "Look for a core dump and the native library at the top of its stack."

FAULTS = (
    Fault(
        id="segfault",
        cause="segfault",
        role=Role.ROOT,
        needles=(
            "egmentation fault",
            "us error",
            "SIGSEGV",
            "SIGBUS",
            "aught signal ",
            "segfault at",
            "Segfault encountered",
        ),
        pattern=re.compile(
            _SHELL + r"(?:[Ss]egmentation fault|[Bb]us error)(?: *\(core dumped\)| {2,}|:|$)|"
            r"^Fatal Python error: (?:Segmentation fault|Bus error)|!!!!!!! Segfault encountered|"
            r"\*\*\* (?:SIGSEGV|SIGBUS)(?: \(@\S+\))? received|[Cc]aught signal (?:11|7) \(|\]: segfault at |"
            r"^srun: error: .*: task[s ]+[\d,\[\]-]+: (?:Segmentation fault|Bus error)|"
            r"^Signal: (?:Segmentation fault|Bus error) \("
        ),
        scope=Scope.LINE,
        advice=_CRASH,
        source="glibc, bash, srun, faulthandler, UCX, glog",
        yes=(
            "Fatal Python error: Segmentation fault",
            "/var/spool/slurmd/job1/slurm_script: line 44: 881 Segmentation fault      (core dumped) python train.py",
            "[n62:6602 :0:6602] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)",
            "srun: error: n13: task 3: Segmentation fault (core dumped)",
        ),
        no=("core dumped is disabled (ulimit -c 0)", "Segmentation fault handler installed"),
    ),
    Fault(
        id="segfault-reported",
        cause="segfault",
        role=Role.SYMPTOM,
        needles=(
            "exitcode",
            "return code",
            "SIGSEGV",
            "SIGBUS",
            "xit code",
            "xit Code",
            "with code",
        ),
        pattern=re.compile(
            r"exitcode *:? -(?:11|7)\b|Signal (?:11|7) \(SIG(?:SEGV|BUS)\) received|return code = -(?:11|7)\b|died with <Signals\.SIG(?:SEGV|BUS)|"
            r"terminated with signal SIG(?:SEGV|BUS)|[Ee]xit(?:ed)?(?: with)?(?: exit)? [Cc]ode: {0,6}(?:139|135)\b|[Ee]xit(?:ed)?(?: with)?(?: exit)? code (?:139|135)\b"
        ),
        weight=22,
        advice=_CRASH,
        source="torchrun, DeepSpeed, subprocess, srun",
        yes=(
            "  exitcode  : -11 (pid: 6602)",
            "failed (exitcode: -11) local_rank: 2 (pid: 6602) of binary: /opt/venv/bin/python3.12",
        ),
        no=("loss=-11.39 step 139",),
    ),
    Fault(
        id="illegal-instruction",
        cause="segfault",
        role=Role.ROOT,
        needles=("llegal instruction",),
        pattern=re.compile(
            _SHELL
            + r"[Ii]llegal instruction(?: *\(core dumped\)| {2,}|:|$)|^Fatal Python error: Illegal instruction"
        ),
        scope=Scope.LINE,
        advice="A binary was built for another processor: rebuild it, or choose nodes that have it.",
        source="glibc, bash",
        yes=("./run.sh: line 3: 881 Illegal instruction     (core dumped) python train.py",),
        no=("an illegal instruction was encountered",),
    ),
    Fault(
        id="sigkill",
        cause="sigkill",
        role=Role.SYMPTOM,
        needles=(
            "illed",
            "exitcode",
            "return code",
            "SIGKILL",
            "xit code",
            "xit Code",
            "exit status",
            "with code",
        ),
        pattern=re.compile(
            _SHELL
            + r"[Kk]illed(?: *\(core dumped\))?(?:$| {2,})|^srun: error: .*: task[s ]+[\d,\[\]-]+: Killed|"
            r"exitcode *:? -9\b|Signal 9 \(SIGKILL\) received|return code = -9\b|died with <Signals\.SIGKILL|"
            r"terminated with signal SIGKILL|returned non-zero exit status (?:137|-9)\b|[Ee]xit(?:ed)?(?: with)?(?: exit)? [Cc]ode: {0,6}(?:137|-9)\b|[Ee]xit(?:ed)?(?: with)?(?: exit)? code (?:137|-9)\b"
        ),
        weight=65,
        advice=_KILL,
        source="bash, srun, torchrun, DeepSpeed, subprocess",
        yes=(
            "[2026-02-27 18:50:22,930] [ERROR] [launch.py:325:sigkill_handler] ['python3', 'train.py'] exits with return code = -9",
            "./job.sh: line 44:   881 Killed                  python train.py",
            "  exitcode  : -9 (pid: 88)",
            "srun: error: gpu-018: task 2: Killed",
        ),
        no=(
            "[launch.py:319:sigkill_handler] Killing subprocess 188401",
            "killed 3 stale sandboxes",
            "step 137 lr 1e-9",
        ),
    ),
    Fault(
        id="sigterm-agent",
        cause="sigterm",
        role=Role.SYMPTOM,
        needles=(
            "death signal",
            "SignalException",
            "got signal: ",
            "eceived SIGTERM",
            "SIGTERM received",
            "aught SIGTERM",
            "terminated with signal",
        ),
        pattern=re.compile(
            r"[Rr]eceived (?:15|1|2|Signals\.SIG(?:TERM|HUP|INT)) death signal|SignalException: Process \d+ got signal: \d+|"
            r"(?:[Rr]eceived|[Cc]aught) SIGTERM(?!,? (?:finishing|saving|forward))|SIGTERM received|child terminated with signal 15"
        ),
        weight=80,
        any_level=True,
        advice=_TERM,
        source="torchrun, pyxis, trainers",
        yes=(
            "torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal, shutting down workers",
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 19208 got signal: 15",
        ),
        no=("rank 0 | received SIGTERM, finishing step 2601 and saving", "KILL_ON_SIGTERM=0"),
    ),
    Fault(
        id="sigterm",
        cause="sigterm",
        role=Role.SYMPTOM,
        needles=("erminated", "return code", "SIGTERM", "exit status", "xit code", "xit Code"),
        pattern=re.compile(
            _SHELL + r"[Tt]erminated(?:$| {2,})|^srun: error: .*: task[s ]+[\d,\[\]-]+: Terminated|"
            r"return code = -15\b|died with <Signals\.SIGTERM|terminated with signal SIGTERM|returned non-zero exit status (?:143|-15)\b|"
            r"^srun: error: .*Exited with exit code 143"
        ),
        weight=90,
        advice=_TERM,
        source="bash, srun, DeepSpeed, subprocess",
        yes=(
            "Terminated",
            "srun: error: n11: task 1: Terminated",
            "./job.sh: line 9: 881 Terminated              python train.py",
        ),
        no=("Sending process 41233 closing signal SIGTERM", "episode terminated after 15 turns"),
    ),
    Fault(
        id="interrupted",
        cause="sigterm",
        role=Role.SYMPTOM,
        needles=("KeyboardInterrupt",),
        pattern=re.compile(r"^KeyboardInterrupt\b"),
        scope=Scope.EXCEPTION,
        weight=92,
        advice="Somebody, or a launcher, interrupted it (SIGINT).",
        source="Python",
        yes=("KeyboardInterrupt",),
        no=("press Ctrl-C for a KeyboardInterrupt",),
    ),
    Fault(
        id="aborted",
        cause="unknown",
        role=Role.SYMPTOM,
        needles=(
            "borted",
            "terminate called",
            "Fatal Python error",
            "exitcode",
            "return code",
            "double free",
            "malloc()",
            "corrupted size",
            "stack smashing",
            "free()",
        ),
        pattern=re.compile(
            _SHELL
            + r"Aborted(?: *\(core dumped\))?(?:$| {2,})|^terminate called (?:after|without)|^Fatal Python error: |"
            r"exitcode *:? -6\b|return code = -6\b|^(?:double free or corruption|malloc\(\): |corrupted size vs|\*\*\* stack smashing|free\(\): )"
        ),
        scope=Scope.LINE,
        weight=75,
        advice=_CRASH,
        source="glibc, libstdc++, faulthandler",
        yes=(
            "Fatal Python error: Aborted",
            "terminate called after throwing an instance of 'std::runtime_error'",
            "free(): invalid pointer",
        ),
        no=("upload aborted by user request",),
    ),
    Fault(
        id="launcher-says-failed",
        cause="unknown",
        role=Role.CONFIRMATION,
        needles=(
            "ChildFailedError",
            "failed (exitcode",
            "exits with return code",
            "CalledProcessError",
            "ProcessRaisedException",
            "ProcessExitedException",
            "finished: FAILED",
            "' failed",
            " Error ",
        ),
        pattern=re.compile(
            r"\bChildFailedError\b|failed \(exitcode: [1-9-]|exits with return code = [1-9-]|^(?:[\w.]+\.)?(?:CalledProcessError|Process(?:Raised|Exited)Exception)\b|"
            r"^make: \*\*\* .* Error \d|Job '[\w-]{1,80}' failed$|finished: FAILED\b"
        ),
        any_level=True,
        advice="Nothing says why: read the log from its end upwards.",
        source="torchrun, DeepSpeed, subprocess, Ray jobs, NeMo-Run",
        yes=(
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
            "failed (exitcode: 1) local_rank: 3 (pid: 41235) of binary: /opt/venv/bin/python",
            "make: *** [Makefile:12: all] Error 2",
        ),
        no=("3 trials failed",),
    ),
    Fault(
        id="script-says-failed",
        cause="unknown",
        role=Role.CONFIRMATION,
        needles=("xit", "with code"),
        pattern=re.compile(
            r"(?:^|\s)(?:job )?(?:exited|failed|finished)? ?(?:with )?(?:exit (?:code|status)|code)[ :=]{1,3}(?!(?:0|130|143)\b)\d{1,3}\.?$|^exit [1-9]\d{0,2}$"
        ),
        scope=Scope.LINE,
        advice="Nothing says why: read the log from its end upwards.",
        source="job scripts",
        yes=("job exited with code 1", "exit 1", "Evaluation not started. exit code: 1"),
        no=("exit code: 0", "exit 0", "job exit 0"),
    ),
    Fault(
        id="stopped-by-launcher",
        cause="sigterm",
        role=Role.CONSEQUENCE,
        needles=(
            "closing signal SIG",
            "Killing subprocess",
            "(SIGTERM) received by PID",
            "DUE TO TASK FAILURE",
            "Job step aborted",
            "forcing job termination",
            "Force Terminated",
            "Terminating StepId",
        ),
        any_level=True,
        advice="The launcher stopped it after a peer failed.",
        source="torchrun, DeepSpeed, srun",
        yes=(
            "Sending process 41233 closing signal SIGTERM",
            "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        ),
        no=("closing 3 files",),
    ),
)
