"""Collectives: a rank that waits says so, and it is rarely the one to blame."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

FAULTS = (
    Fault(
        id="peer-lost",
        cause="network",
        role=Role.CONSEQUENCE,
        needles=(
            "remote process exited or there was a network error",
            "ncclRemoteError",
            "communicator was aborted",
            "Connection closed by peer",
            "Connection reset by peer",
            "caused by a remote worker crashing",
            "Connection closed by remote peer",
            "sendBytes failed",
            "recvValue failed",
            "failed to recv, got",
            "recvVector",
            "Broken pipe",
            "gloo",
            "NCCL operation was aborted",
            "ncclCommAbort",
            "Stop_waiting response is expected",
            "another rank",
        ),
        pattern=re.compile(
            r"remote process exited or there was a network error|ncclRemoteError|NCCL communicator was aborted|"
            r"gloo.*(?:Connection (?:closed|reset) by peer|Broken pipe)|remote worker crashing|Connection closed by remote peer|"
            r"sendBytes failed|recvV\w+ failed|failed to recv, got 0 bytes|TCPStore.*Broken pipe|ncclCommAbort|"
            r"\[Rank \d+\] (?:NCCL operation was aborted|Received a.* signal from another rank|Caught collective operation timeout.*another)|"
            r"^(?:torch\.distributed\.)?Dist(?:Backend|Network|Store)Error: .*(?:Connection reset by peer|Broken pipe|Connection was likely closed)|"
            r"^(?:multiprocess(?:ing)?\.\w+\.)?BrokenPipeError\b|^(?:builtins\.)?EOFError$"
        ),
        any_level=True,
        advice="A peer went first: its own error is the cause.",
        source="PyTorch c10d, NCCL, gloo",
        yes=(
            "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1.",
            "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:60553. This is typically caused by a remote worker crashing.",
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:84, remote process exited or there was a network error, NCCL version 2.21.5",
        ),
        no=(
            "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))",
        ),
    ),
    Fault(
        id="collective-aborted",
        cause="nccl-timeout",
        role=Role.CONSEQUENCE,
        needles=(
            "Some NCCL operations have failed or timed out",
            "To avoid data inconsistency",
            "SIGABRT received",
            "preparing to dump debug info",
            "::DistBackendError",
            "watchdog thread terminated with exception",
        ),
        pattern=re.compile(r"^(?!.*(?:CUDA error|out of memory))"),
        scope=Scope.LINE,
        any_level=True,
        advice="It follows from the time-out above it.",
        source="PyTorch ProcessGroupNCCL",
        yes=(
            "[Rank 5] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels",
            "terminate called after throwing an instance of 'c10::DistBackendError'",
        ),
        no=("terminate called after throwing an instance of 'std::bad_alloc'",),
    ),
    Fault(
        id="nccl-timeout",
        cause="nccl-timeout",
        role=Role.SYMPTOM,
        needles=(
            "Watchdog caught collective operation timeout",
            "watchdog got stuck",
            "Heartbeat monitor timed out",
            "before timing out",
            "failure detected by watchdog",
            "Timed out waiting",
            "Got completion from peer",
            "wait timeout after",
            "Timeout waiting for key",
            "detected by watchdog",
            "Socket Timeout",
            "NCCL timeout",
        ),
        pattern=re.compile(
            r"Watchdog caught collective operation timeout|watchdog got stuck for \d+|Heartbeat monitor timed out|"
            r"ran for \d+ milliseconds before timing out|failure detected by watchdog|timeout\) detected by watchdog|"
            r"gloo.*Timed out waiting \d+ms|NET/IB .*Got completion from peer .*status=\d+|"
            r"^(?:[\w.]+Error): .*(?:wait timeout after \d+ms|Timeout waiting for key|Socket Timeout|NCCL timeout|Timed out waiting \d+ms)"
        ),
        weight=60,
        any_level=True,
        advice="Look for a rank that stopped taking part (the one that printed no time-out), then for the fabric.",
        source="PyTorch ProcessGroupNCCL, NCCL, gloo",
        yes=(
            "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=26413, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600007 milliseconds before timing out.",
            "Heartbeat monitor timed out! Process will be terminated after dumping debug info.",
            "n31:3112:3601 [2] transport/net_ib.cc:1889 NCCL WARN NET/IB : Got completion from peer 10.9.1.32<48915> with status=12 opcode=0 len=0 vendor err 129 (Send)",
        ),
        no=(
            "export SKYRL_WORKER_NCCL_TIMEOUT_IN_S=1800",
            "NCCL_ASYNC_ERROR_HANDLING is deprecated",
        ),
    ),
    Fault(
        id="nccl-cuda",
        cause="cuda-error",
        role=Role.SYMPTOM,
        needles=("ncclUnhandledCudaError", "unhandled cuda error"),
        weight=40,
        advice="NCCL passes on a CUDA error of this rank: set NCCL_DEBUG=INFO and look above.",
        source="NCCL",
        yes=(
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        ),
        no=("NCCL version 2.21.5+cuda12.4",),
    ),
    Fault(
        id="nccl-usage",
        cause="config-error",
        role=Role.ROOT,
        needles=("Duplicate GPU detected", "ncclInvalidUsage"),
        advice="Two ranks use one GPU: check the number of processes a node and CUDA_VISIBLE_DEVICES.",
        source="NCCL",
        yes=("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000",),
        no=("rank 1 on CUDA device 7000",),
        any_level=True,
    ),
    Fault(
        id="nccl-system",
        cause="network",
        role=Role.SYMPTOM,
        needles=(
            "ncclSystemError",
            "unhandled system error",
            "ncclInternalError",
            "internal error - please report",
            "no socket interface found",
            "connectFullMesh failed",
            "Internal check failed",
        ),
        weight=55,
        advice="NCCL could not use the network: check NCCL_SOCKET_IFNAME, the fabric and the firewall between nodes.",
        source="NCCL",
        yes=(
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
        ),
        no=("system errors: 0",),
    ),
    Fault(
        id="rendezvous",
        cause="network",
        role=Role.SYMPTOM,
        needles=(
            "RendezvousTimeoutError",
            "RendezvousConnectionError",
            "waiting for clients",
            "RendezvousClosedError",
            "client socket has timed out",
            "client socket has failed to connect",
        ),
        pattern=re.compile(
            r"^(?:[\w.]+\.)?(?:Rendezvous(?:Timeout|Connection|Closed)Error)\b|Timed out after \d+ seconds waiting for clients|client socket has (?:timed out|failed to connect)"
        ),
        scope=Scope.EXCEPTION,
        weight=58,
        advice="Not all nodes met: check the master address and port, and that every node started.",
        source="PyTorch elastic, TCPStore",
        yes=(
            "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 3/4 clients joined.",
        ),
        no=("waiting for clients",),
    ),
)
