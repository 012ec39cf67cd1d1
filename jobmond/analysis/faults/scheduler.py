"""Schedulers and the kernel: they name the reason themselves."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

_TIME = "Ask for more time, or resume from the last checkpoint with a chained job."
_NODE = "Submit again; if the same node fails twice, exclude it and tell the site."
_PREEMPTED = "Submit again, or wait where the job requeues by itself."
_MEMORY = "Ask for more memory, or use less of it per node (workers, batch, offloading)."

FAULTS = (
    Fault(
        id="slurm-time-limit",
        cause="walltime",
        role=Role.VERDICT,
        needles=("DUE TO TIME LIMIT",),
        pattern=re.compile(r"DUE TO TIME LIMIT *\*\*\*"),
        scope=Scope.LINE,
        advice=_TIME,
        source="Slurm, slurmstepd",
        yes=(
            "slurmstepd: error: *** JOB 17 ON n1 CANCELLED AT 2026-07-14T21:00:12 DUE TO TIME LIMIT ***",
        ),
        no=('patterns: ["CUDA out of memory", "DUE TO TIME LIMIT"]',),
    ),
    Fault(
        id="batch-run-limit",
        cause="walltime",
        role=Role.VERDICT,
        needles=(
            "TERM_RUNLIMIT",
            "job killed: walltime",
            "DeadlineExceeded",
            "Maximum total walltime",
        ),
        pattern=re.compile(
            r"TERM_RUNLIMIT: job killed|=>> PBS: job killed: walltime|"
            r"(?:reason\"?: ?\"?|Reason: +)DeadlineExceeded|Maximum total walltime \([^)]*\) exceeded"
        ),
        scope=Scope.LINE,
        advice=_TIME,
        source="LSF, PBS, Kubernetes, nel",
        yes=(
            "=>> PBS: job killed: walltime 86433 exceeded limit 86400",
            "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
            '"reason":"DeadlineExceeded"',
        ),
        no=("grpc status DeadlineExceeded, retrying",),
    ),
    Fault(
        id="slurm-preempted",
        cause="preempted",
        role=Role.VERDICT,
        needles=("DUE TO PREEMPTION", "DUE TO JOB REQUEUE", "DUE TO QOS PREEMPTION"),
        pattern=re.compile(r"CANCELLED AT \S+ DUE TO (?:PREEMPTION|JOB REQUEUE|QOS PREEMPTION)"),
        scope=Scope.LINE,
        advice=_PREEMPTED,
        source="Slurm, slurmstepd",
        yes=(
            "slurmstepd: error: *** JOB 5820 ON n81 CANCELLED AT 2026-05-21T19:36:10 DUE TO PREEMPTION ***",
        ),
        no=("requeue_on: [NODE_FAIL, PREEMPTED, TIMEOUT]",),
    ),
    Fault(
        id="kubernetes-evicted",
        cause="preempted",
        role=Role.VERDICT,
        needles=(
            "Evicted",
            "TerminationByKubelet",
            "PreemptionByScheduler",
            "EvictionByEvictionAPI",
            "Preempted",
        ),
        pattern=re.compile(
            r"(?:[Rr]eason\"?: *\"?|Warning +|Normal +)"
            r"(?:Evicted|TerminationByKubelet|PreemptionByScheduler|EvictionByEvictionAPI|Preempted)\b"
        ),
        scope=Scope.LINE,
        advice=_PREEMPTED,
        source="Kubernetes, pod conditions and events",
        yes=(
            "  Reason:       Evicted",
            "  Warning  Evicted  2m  kubelet  The node was low on resource: memory.",
        ),
        no=("KV cache: 12 blocks Evicted",),
    ),
    Fault(
        id="slurm-node-failure",
        cause="node-failure",
        role=Role.VERDICT,
        needles=("DUE TO NODE FAILURE", "Node failure on"),
        pattern=re.compile(
            r"CANCELLED AT \S+ DUE TO NODE FAILURE|^srun: error: Node failure on \S"
        ),
        scope=Scope.LINE,
        advice=_NODE,
        source="Slurm, srun and slurmstepd",
        yes=(
            "srun: error: Node failure on n03",
            "slurmstepd: error: *** STEP 4.0 ON n01 CANCELLED AT 2026-09-01T02:19:33 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
        ),
        no=("INFO: Node failure on previous attempt was n03, excluded",),
    ),
    Fault(
        id="kubernetes-node-lost",
        cause="node-failure",
        role=Role.VERDICT,
        needles=("NodeLost", "DeletionByTaintManager", "NodeNotReady"),
        pattern=re.compile(
            r"(?:[Rr]eason\"?: *\"?|Warning +)(?:NodeLost|DeletionByTaintManager|NodeNotReady)\b"
        ),
        scope=Scope.LINE,
        advice=_NODE,
        source="Kubernetes, pod conditions and events",
        yes=("  Warning  NodeNotReady  3m  node-controller  Node is not ready",),
        no=("metrics: NodeNotReady=0",),
    ),
    Fault(
        id="slurm-oom-kill",
        cause="host-oom",
        role=Role.VERDICT,
        needles=(
            "oom_kill event",
            "oom-kill event",
            "oom_kill",
            "Out Of Memory",
            "OOM Killed",
            "exceeded memory limit",
            "memory limit at some point",
        ),
        pattern=re.compile(
            r"[Dd]etected \d+ oom[-_]kill event|task[s ]+[\d,-]+: Out Of Memory|^OOM Killed\.?$|"
            r"^slurmstepd: error:.*(?:OOM Killed|oom[-_]kill|exceeded (?:job |step )?memory limit|Exceeded \w+ memory limit)|"
            r"^(?:[\w.-]{1,60}: ){0,3}oom[-_]kill(?: event|ed)?\.?$|"
            r"Some of (?:your processes|the step tasks) (?:may )?have been (?:OOM Killed|killed by the cgroup)"
        ),
        scope=Scope.LINE,
        advice=_MEMORY,
        source="Slurm, slurmstepd and srun",
        yes=(
            "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.",
            "srun: error: n05: task 0: Out Of Memory",
            "OOM Killed.",
        ),
        no=("oom_kill_disable 0", "under_oom 0, oom_kill 0"),
    ),
    Fault(
        id="kernel-oom-kill",
        cause="host-oom",
        role=Role.VERDICT,
        needles=(
            "oom-kill:constraint",
            "emory cgroup out of memory",
            "Out of memory: Killed process",
            "OOMKilled",
            "TERM_MEMLIMIT",
            "job killed: mem",
            "OOMKilling",
        ),
        pattern=re.compile(
            r"oom-kill:constraint|[Mm]emory cgroup out of memory|Out of memory: Killed process|"
            r"(?:[Rr]eason\"?: *\"?|Warning +|Last State: .*|STATUS.*|\s)OOMKilled?(?:ing)?\b|TERM_MEMLIMIT|=>> PBS: job killed: mem"
        ),
        scope=Scope.LINE,
        advice=_MEMORY,
        source="Linux kernel, Kubernetes, LSF, PBS",
        yes=(
            "      Reason:       OOMKilled",
            "[8.1] Memory cgroup out of memory: Killed process 4711 (python) total-vm:9kB",
            "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)",
        ),
        no=('restart_on: "OOMKilled"',),
    ),
    Fault(
        id="unschedulable",
        cause="unschedulable",
        role=Role.SYMPTOM,
        needles=(
            "nodes are available:",
            "FailedScheduling",
            "Requested node configuration is not available",
            "QOSMinGRES",
            "violates accounting/QOS policy",
            "QOSMaxGRES",
            "Unable to allocate resources",
        ),
        pattern=re.compile(
            r"\d+/\d+ nodes are available: |Warning +FailedScheduling|Requested node configuration is not available|violates accounting/QOS policy|"
            r"QOSM(?:in|ax)GRES|Unable to allocate resources: (?!Invalid)"
        ),
        scope=Scope.LINE,
        weight=70,
        advice="Ask for what the cluster has: partition, QOS, GPUs and memory per node.",
        source="Kubernetes scheduler, sbatch and srun",
        yes=(
            "sbatch: error: Batch job submission failed: Requested node configuration is not available",
            "0/12 nodes are available: 12 Insufficient nvidia.com/gpu.",
        ),
        no=("all nodes are available",),
    ),
    Fault(
        id="slurm-cancelled",
        cause="sigterm",
        role=Role.SYMPTOM,
        needles=("CANCELLED AT",),
        pattern=re.compile(
            r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+(?: DUE to SIGNAL \w{1,20})? \*\*\*"
        ),
        scope=Scope.LINE,
        weight=95,
        advice="Find out who cancelled it: a person, a dependency, or srun after one of its tasks failed.",
        source="Slurm, slurmstepd",
        yes=("slurmstepd: error: *** JOB 77190 ON n10 CANCELLED AT 2026-06-09T09:10:53 ***",),
        no=(
            "slurmstepd: error: *** STEP 9.1 ON n4 CANCELLED AT 2026-10-20T15:27:47 DUE TO TASK FAILURE ***",
        ),
    ),
    Fault(
        id="slurm-task-failed",
        cause="unknown",
        role=Role.CONFIRMATION,
        needles=("xited with exit code",),
        pattern=re.compile(
            r"^srun: error: \S+ tasks? [\d,\[\]-]+: Exited with exit code (?!(?:0|130|143)\b)\d+"
        ),
        scope=Scope.LINE,
        advice="Nothing says why: read the log from its end upwards.",
        source="Slurm, srun",
        yes=("srun: error: n03: task 0: Exited with exit code 3",),
        no=("srun: error: n40: task 0: Exited with exit code 143",),
    ),
)
