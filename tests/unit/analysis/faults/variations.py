"""Short logs of every family, written for these tests: what broke, and the line that says so.

`says` is a part of the line that states the cause; None for a healthy log. Where several classes
are right they are joined by `|`. `null` among them says that no diagnosis is right as well.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    cause: str | None
    says: str | None
    log: str


STEPS = "".join(
    f"2026-03-0{1 + i // 60} 10:{i % 60:02}:00 | INFO | step {i}/900 | loss {2.5 - i / 400:.4f} | grad_norm 0.41\n"
    for i in range(40)
)
MORE_STEPS = "".join(
    f"2026-03-02 11:{i % 60:02}:00 | INFO | step {i}/900 | loss 2.1 | grad_norm 0.40\n"
    for i in range(40, 70)
)
ELASTIC = """\
W0301 10:41:02.114000 41200 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 41233 closing signal SIGTERM
W0301 10:41:02.115000 41200 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 41234 closing signal SIGTERM
E0301 10:41:02.991000 41200 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 2 (pid: 41235) of binary: /opt/venv/bin/python
Traceback (most recent call last):
  File "/opt/venv/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/opt/venv/lib/python3.12/site-packages/torch/distributed/launcher/api.py", line 277, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
  <NO_OTHER_FAILURES>
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-03-01_10:41:02
  host      : n17
  rank      : 2 (local_rank: 2)
  exitcode  : 1 (pid: 41235)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""  # noqa: W291 (torch prints it so)


def trace(message: str, prefix: str = "", path: str = "/w/proj/train.py") -> str:
    lines = (
        "Traceback (most recent call last):",
        f'  File "{path}", line 88, in <module>',
        "    main()",
        f'  File "{path}", line 51, in main',
        "    out = model(batch)",
        message,
    )
    return "".join(f"{prefix}{line}\n" for line in lines)


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 2 has a total capacity of 79.11 GiB of which 0.91 GiB is free."
EXIT_1 = "srun: error: n17: task 0: Exited with exit code 1\n"

GPU = (
    Case("oom-torchrun", "cuda-oom", OOM, STEPS + trace(OOM, "[rank2]: ") + ELASTIC),
    Case("oom-plain-no-launcher", "cuda-oom", OOM, STEPS + trace(OOM)),
    Case(
        "oom-glued-to-bar",
        "cuda-oom",
        OOM,
        "start\n\r 12%|#2   | 12/99 [00:12<01:30,  1.01s/it]" + trace(OOM),
    ),
    Case("oom-default-prefix", "cuda-oom", OOM, STEPS + trace(OOM, "[default3]:") + EXIT_1),
    Case(
        "oom-deepspeed-timestamps",
        "cuda-oom",
        OOM,
        STEPS
        + trace(OOM)
        + "[2026-03-01 10:00:00,1] [ERROR] [launch.py:321:sigkill_handler] ['python3', 'train.py', '--local_rank=3'] exits with return code = 1\n",
    ),
    Case(
        "oom-in-xla",
        "cuda-oom",
        "RESOURCE_EXHAUSTED",
        STEPS
        + trace(
            "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes."
        ),
    ),
    Case(
        "oom-cublas",
        "cuda-oom",
        "CUBLAS_STATUS_ALLOC_FAILED",
        trace(
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
        ),
    ),
    Case(
        "oom-vllm-cache",
        "cuda-oom",
        "No available memory for the cache blocks",
        "".join(
            f"(EngineCore_DP0 pid=231) ERROR 03-01 10:00:0{i} [core.py:708] {line}\n"
            for i, line in enumerate(
                [
                    "EngineCore failed to start.",
                    *trace(
                        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
                    ).splitlines(),
                ]
            )
        )
        + trace(
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
            "(APIServer pid=118) ",
        ),
    ),
    Case(
        "illegal-access",
        "cuda-error",
        "illegal memory access",
        STEPS
        + trace("RuntimeError: CUDA error: an illegal memory access was encountered", "[rank2]: ")
        + "[rank2]: CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.\n"
        + ELASTIC,
    ),
    Case(
        "fell-off-the-bus",
        "cuda-error|node-failure",
        "fallen off the bus",
        STEPS
        + "[82711.1] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        + trace("RuntimeError: CUDA error: unspecified launch failure"),
    ),
    Case(
        "no-gpu",
        "cuda-error|config-error",
        "No CUDA GPUs",
        trace("RuntimeError: No CUDA GPUs are available") + EXIT_1,
    ),
    Case(
        "old-driver",
        "container|cuda-error",
        "too old",
        trace(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver."
        )
        + EXIT_1,
    ),
    Case(
        "oom-recovered",
        None,
        None,
        STEPS
        + "2026-03-02 10:59:00 | WARNING | step 39: caught OOM, emptying the cache and retrying\n"
        + trace(OOM)
        + MORE_STEPS,
    ),
    Case("oom-retried-quietly", None, None, STEPS + trace(OOM) + MORE_STEPS + "exit 0\n"),
)
MEMORY = (
    Case(
        "cgroup",
        "host-oom",
        "oom_kill event",
        STEPS
        + "slurmstepd: error: Detected 2 oom_kill events in StepId=99.0. Some of the step tasks have been OOM Killed.\nsrun: error: n5: task 3: Out Of Memory\n".replace(
            "events in", "event in"
        ),
    ),
    Case(
        "cgroup-after-python",
        "host-oom",
        "oom_kill event",
        STEPS
        + trace("RuntimeError: DataLoader worker (pid 81) is killed by signal: Killed.")
        + "slurmstepd: error: Detected 1 oom_kill event in StepId=9.batch. Some of the step tasks have been OOM Killed.\n",
    ),
    Case(
        "memory-error",
        "host-oom|python-exception",
        "MemoryError",
        trace(
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 380. GiB for an array with shape (51000000000,) and data type float64"
        )
        + EXIT_1,
    ),
    Case(
        "raylet",
        "host-oom",
        "memory pressure",
        STEPS
        + "(raylet, ip=10.0.0.4) [2026-03-01 10:00:00,049 E 15 15] (raylet) node_manager.cc:3065: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: 3d1f, IP: 10.0.0.4) over the last time period.\n"
        + trace(
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
        ),
    ),
    Case(
        "kernel",
        "host-oom",
        "Memory cgroup out of memory",
        STEPS
        + "[1299.1] Memory cgroup out of memory: Killed process 4123 (python) total-vm:812342kB, anon-rss:79123kB\n./run.sh: line 12:  4123 Killed                  python train.py\n",
    ),
    Case(
        "bash-killed",
        "sigkill|host-oom",
        "Killed",
        STEPS
        + "/var/spool/slurmd/job771/slurm_script: line 31: 22918 Killed                  python -m proj.train --config c.yaml\n",
    ),
    Case(
        "elastic-sigkill",
        "sigkill|host-oom",
        "-9",
        STEPS
        + "E0301 10:41:02.991000 41200 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -9) local_rank: 0 (pid: 88) of binary: /opt/venv/bin/python\n"
        + trace(
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
            path="/opt/venv/lib/python3.12/site-packages/torch/distributed/run.py",
        ),
    ),
    Case(
        "shm",
        "host-oom|container|segfault",
        "bus error",
        STEPS
        + "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
        + trace("RuntimeError: DataLoader worker (pid(s) 871) exited unexpectedly"),
    ),
    Case(
        "map-killed",
        "sigkill|host-oom|python-exception",
        "abruptly died",
        trace(
            "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the error, disable multiprocessing."
        )
        + EXIT_1,
    ),
)
COLLECTIVES = (
    Case(
        "gloo-victim-first",
        "python-exception",
        "ValueError: bad shard",
        STEPS
        + trace(
            "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.1]:60553. This is typically caused by a remote worker crashing. Check the logs of the remote worker before reporting an error.",
            "[rank0]: ",
        )
        + trace("ValueError: bad shard 17: 3 columns, want 4", "[rank1]: ")
        + ELASTIC,
    ),
    Case(
        "nccl-abort-victims",
        "missing-file",
        "No such file",
        STEPS
        + trace(
            "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:84, remote process exited or there was a network error, NCCL version 2.21.5",
            "[rank5]: ",
        )
        + "[rank5]: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n[rank5]: Last error:\n[rank5]: socketPollConnect: connect returned Connection refused, exceeded error retry count (35)\n"
        + trace(
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/part-0007.bin'",
            "[rank2]: ",
        )
        + ELASTIC,
    ),
    Case(
        "watchdog-alone",
        "nccl-timeout",
        "Watchdog caught",
        STEPS
        + "".join(
            f"[rank{r}]:[E301 10:44:30.94197549{r} ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=971, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600007 milliseconds before timing out.\n"
            for r in range(4)
        )
        + "[rank0]:[E301 10:45:30.1 ProcessGroupNCCL.cpp:688] [Rank 0] Some NCCL operations have failed or timed out.\nterminate called after throwing an instance of 'c10::DistBackendError'\n",
    ),
    Case(
        "thread-died-earlier",
        "python-exception",
        "KeyError: 'tokens'",
        STEPS
        + "[rank1]: Exception in thread loader:\n"
        + trace("KeyError: 'tokens'", "[rank1]: ", "/w/proj/loader.py")
        + MORE_STEPS[:1500]
        + "".join(
            f"[rank{r}]:[E301 11:44:30.94197549{r} ProcessGroupNCCL.cpp:632] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=971, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600007 milliseconds before timing out.\n"
            for r in (0, 2, 3)
        ),
    ),
    Case(
        "heartbeat",
        "nccl-timeout",
        "Heartbeat monitor",
        STEPS
        + "[rank3]:[F301 10:44:30.941975491 ProcessGroupNCCL.cpp:1557] [PG ID 0 PG GUID 0(default_pg) Rank 3] Heartbeat monitor timed out! Process will be terminated after dumping debug info. workMetaList_.size()=4\n"
        + ELASTIC.replace("exitcode: 1)", "exitcode: -6)"),
    ),
    Case(
        "oom-among-nccl",
        "cuda-oom",
        OOM,
        STEPS
        + trace(
            "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.",
            "[rank0]: ",
        )
        + trace(OOM, "[rank6]: ")
        + trace(
            "torch.distributed.DistBackendError: NCCL communicator was aborted on rank 3.",
            "[rank3]: ",
        )
        + ELASTIC,
    ),
    Case(
        "tee-interleaved",
        "python-exception",
        "ZeroDivisionError",
        STEPS
        + "".join(
            a + b
            for a, b in zip(
                trace("ZeroDivisionError: division by zero", "[n7:1]:[rank1]: ").splitlines(True),
                trace(
                    "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:84, remote process exited or there was a network error, NCCL version 2.21.5",
                    "[n8:3]:[rank11]: ",
                ).splitlines(True),
                strict=True,
            )
        )
        + ELASTIC,
    ),
    Case(
        "env-dump-only",
        None,
        None,
        "export TORCH_NCCL_ASYNC_ERROR_HANDLING=1\nNCCL_DEBUG=INFO\nexport NCCL_TIMEOUT=1800\n"
        + STEPS,
    ),
)
ENGINES = (
    Case(
        "vllm-worker",
        "engine-dead",
        "AssertionError: page table",
        "".join(
            f"(EngineCore_DP0 pid=7) (Worker_TP1 pid=9) ERROR 03-01 10:00:00 [multiproc_executor.py:671] {line}\n"
            for line in trace("AssertionError: page table corrupt").splitlines()
        )
        + "(EngineCore_DP0 pid=7) ERROR 03-01 10:00:01 [core.py:710] EngineCore encountered a fatal error.\n(APIServer pid=1) ERROR 03-01 10:00:02 [async_llm.py:480] AsyncLLM output_handler failed.\n"
        + trace(
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
            "(APIServer pid=1) ",
        )
        + "client: openai.InternalServerError: Error code: 500\n"
        + EXIT_1,
    ),
    Case(
        "vllm-rpc",
        "engine-dead",
        "RPC call to sample_tokens timed out",
        STEPS
        + "".join(
            f"(EngineCore_DP0 pid=7) ERROR 03-01 10:00:00 [core.py:710] {line}\n"
            for line in (
                "EngineCore encountered a fatal error.",
                *trace("TimeoutError: RPC call to sample_tokens timed out.").splitlines(),
            )
        )
        + trace("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.")
        + EXIT_1,
    ),
    Case(
        "sglang",
        "engine-dead",
        "IndexError: radix",
        "[2026-03-01 10:00:00 TP0] Decode batch. #running-req: 8\n[2026-03-01 10:00:01 TP0] Scheduler hit an exception: "
        + trace(
            "IndexError: radix cache out of range",
            path="/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py",
        )
        + "\n[2026-03-01 10:00:02] Received sigquit from a child process. It usually means the child failed.\n./run.sh: line 4: 88 Killed                  python -m sglang.launch_server\n",
    ),
    Case(
        "engine-module-missing",
        "import-error",
        "No module named 'flashinfer'",
        "".join(
            f"(EngineCore_DP0 pid=7) ERROR 03-01 10:00:00 [core.py:708] {line}\n"
            for line in (
                "EngineCore failed to start.",
                *trace("ModuleNotFoundError: No module named 'flashinfer'").splitlines(),
            )
        )
        + trace("RuntimeError: Engine core initialization failed. See root cause above.")
        + "client: waiting for server ... connection refused\nERROR server process 118 died before becoming healthy\n"
        + EXIT_1,
    ),
    Case(
        "client-only",
        "engine-dead|network",
        "server process 99 died",
        "2026-03-01 10:00:00 INFO waiting for http://n1:8000/health (connection refused)\n2026-03-01 10:09:00 ERROR server process 99 died before becoming healthy\nEvaluation not started. exit code: 1\n"
        + EXIT_1,
    ),
    Case(
        "idle-heartbeats",
        None,
        None,
        STEPS
        + "(EngineCore_DP0 pid=7) INFO 03-01 10:00:00 [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work.\n"
        * 9,
    ),
    Case(
        "shutdown-after-done",
        None,
        None,
        "evaluated 500/500\nResults written to /r/results.json\nexit code: 0\nslurmstepd: error: *** STEP 9.1 ON n4 CANCELLED AT 2026-10-20T15:27:47 DUE TO TASK FAILURE ***\n"
        + trace("asyncio.exceptions.CancelledError", "ERROR:    ").replace(
            "ERROR:      File", "  File"
        )
        + "srun: error: n4: task 0: Exited with exit code 143\n",
    ),
)
RAY = (
    Case(
        "ray-task-oom",
        "cuda-oom",
        OOM,
        STEPS
        + 'Traceback (most recent call last):\n  File "/w/main.py", line 9, in main\n    ray.get(x)\nray.exceptions.RayTaskError(OutOfMemoryError): \x1b[36mray::Worker.fit()\x1b[39m (pid=52, ip=10.0.0.1)\n  File "/w/worker.py", line 90, in fit\n    loss.backward()\n'
        + OOM
        + "\n(Worker pid=53) [repeated 7x across cluster]\n",
    ),
    Case(
        "actor-died",
        "ray-died|host-oom|sigkill",
        "worker died or was killed|ActorDiedError",
        STEPS
        + "(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker.\n"
        + trace(
            "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."
        )
        + "\tclass_name: Rollout\n\tpid: 16424\nThe actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR\n",
    ),
    Case(
        "ray-user-error",
        "python-exception",
        "ValueError: empty group",
        STEPS
        + "(TaskRunner pid=77) "
        + trace("ValueError: empty group", "(Worker pid=5) ")[len("(Worker pid=5) ") :].replace(
            "(Worker pid=5) ", "(TaskRunner pid=77) "
        )
        + 'Traceback (most recent call last):\n  File "/w/main.py", line 9, in main\n    ray.get(x)\nray.exceptions.RayTaskError(ValueError): ray::TaskRunner.run() (pid=77, ip=10.0.0.1)\n  File "/w/run.py", line 90, in run\n    group()\nValueError: empty group\n',
    ),
    Case(
        "ray-retried",
        None,
        None,
        STEPS
        + "(RewardModel pid=9) WARNING 03-01 10:00:00 rm.py:44] attempt 1/5 failed: RuntimeError: reward server returned 503, retrying in 1 s\n(RewardModel pid=9) INFO 03-01 10:00:02 rm.py:51] request succeeded after retry\n"
        + MORE_STEPS,
    ),
)
NATIVE = (
    Case(
        "segv-faulthandler",
        "segfault",
        "Fatal Python error: Segmentation fault",
        STEPS
        + 'Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f1be4a1d740 (most recent call first):\n  File "/w/kernel.py", line 3 in run\n'
        + ELASTIC.replace("exitcode: 1)", "exitcode: -11)"),
    ),
    Case(
        "segv-bash",
        "segfault",
        "Segmentation fault",
        STEPS + "./go.sh: line 9: 771 Segmentation fault      (core dumped) python train.py\n",
    ),
    Case(
        "segv-srun",
        "segfault",
        "Segmentation fault",
        STEPS
        + "srun: error: n13: task 3: Segmentation fault (core dumped)\nsrun: Terminating StepId=9.0\n",
    ),
    Case(
        "segv-elastic-only",
        "segfault",
        "-11",
        STEPS
        + "E0301 10:41:02.991000 41200 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: -11) local_rank: 2 (pid: 6602) of binary: /opt/venv/bin/python\n"
        + ELASTIC.replace("exitcode  : 1", "exitcode  : -11"),
    ),
    Case(
        "ucx-signal",
        "segfault",
        "Caught signal 11",
        STEPS
        + "[n62:6602 :0:6602] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x8)\n==== backtrace (tid: 6602) ====\n 0 0x0000000000042520 __sigaction()  ???:0\n",
    ),
    Case(
        "bus",
        "segfault|host-oom",
        "Bus error",
        STEPS + "./go.sh: line 9: 771 Bus error               (core dumped) python train.py\n",
    ),
    Case(
        "core-note",
        None,
        None,
        "ulimit: core dumped is disabled\nloss=1.21 dataset=finance_qa took 12 nanoseconds\n"
        + STEPS,
    ),
    Case(
        "sigterm-torchrun",
        "sigterm",
        "Received 15 death signal",
        STEPS
        + "W0402 14:28:37.478747 40011 torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal, shutting down workers\nW0402 14:28:37.479198 40011 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 40100 closing signal SIGTERM\n"
        + trace(
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 40011 got signal: 15"
        ),
    ),
    Case(
        "terminated",
        "sigterm",
        "Terminated",
        STEPS + "./go.sh: line 9: 771 Terminated              python train.py\n",
    ),
    Case(
        "scancel",
        "sigterm",
        "CANCELLED AT",
        STEPS
        + "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nslurmstepd: error: *** JOB 9 ON n1 CANCELLED AT 2026-03-01T10:00:00 ***\n",
    ),
    Case("make", "unknown", "Error 2", "building\nmake: *** [Makefile:12: all] Error 2\n"),
    Case(
        "silent-exit",
        "unknown",
        "Exited with exit code 7",
        STEPS + "srun: error: n03: task 0: Exited with exit code 7\n",
    ),
)
FILES = (
    Case(
        "enospc",
        "disk-full",
        "No space left",
        STEPS
        + trace(
            "OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_40/model.safetensors'"
        )
        + EXIT_1,
    ),
    Case(
        "enospc-torch-save",
        "disk-full|python-exception",
        "PytorchStreamWriter",
        STEPS
        + trace(
            "RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 5242880 vs 5242776"
        )
        .replace("out = model(batch)\n", "out = model(batch)\n")
        .replace(
            "RuntimeError:",
            'RuntimeError: PytorchStreamWriter failed writing file data/3: file write failed\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File "/w/t.py", line 3, in s\n    save()\nRuntimeError:',
            1,
        )
        + EXIT_1,
    ),
    Case(
        "safetensors-full",
        "disk-full",
        "No space left",
        STEPS
        + trace(
            'safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: StorageFull, message: "No space left on device" })'
        )
        + EXIT_1,
    ),
    Case(
        "quota",
        "quota|disk-full",
        "Disk quota exceeded",
        STEPS + trace("OSError: [Errno 122] Disk quota exceeded: '/home/bob/.cache/x'") + EXIT_1,
    ),
    Case(
        "quota-shell",
        "quota|disk-full",
        "Disk quota exceeded",
        "cp: error writing '/home/bob/a.bin': Disk quota exceeded\n" + EXIT_1,
    ),
    Case(
        "permission",
        "permission",
        "Permission denied",
        trace("PermissionError: [Errno 13] Permission denied: '/shared/datasets/x/cache.lock'")
        + EXIT_1,
    ),
    Case(
        "permission-shell",
        "permission",
        "Permission denied",
        "mkdir: cannot create directory '/data/out': Permission denied\n" + EXIT_1,
    ),
    Case(
        "read-only",
        "permission",
        "Read-only file system",
        trace("OSError: [Errno 30] Read-only file system: '/opt/hf/hub'") + EXIT_1,
    ),
    Case(
        "missing",
        "missing-file",
        "No such file",
        trace("FileNotFoundError: [Errno 2] No such file or directory: '/data/train.jsonl'")
        + EXIT_1,
    ),
    Case(
        "missing-script",
        "missing-file",
        "can't open file",
        "/opt/venv/bin/python: can't open file '/w/trian.py': [Errno 2] No such file or directory\n"
        + EXIT_1,
    ),
    Case(
        "missing-command",
        "missing-file|import-error|config-error",
        "command not found",
        "/var/spool/slurmd/job9/slurm_script: line 12: torchrun: command not found\n" + EXIT_1,
    ),
    Case(
        "missing-model",
        "missing-file|config-error|auth",
        "is not a local folder",
        trace(
            "OSError: org/modle-7b is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'"
        )
        + "If this is a private repository, make sure to pass a token having permission to this repo.\n"
        + EXIT_1,
    ),
    Case(
        "ignored-probe",
        None,
        None,
        "ls: cannot access '/opt/extra': No such file or directory\n" + STEPS + MORE_STEPS,
    ),
)
SETTINGS = (
    Case(
        "argparse",
        "config-error",
        "unrecognized arguments",
        "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --lrr 3\n"
        + "srun: error: n17: task 0: Exited with exit code 2\n",
    ),
    Case(
        "argparse-required",
        "config-error",
        "are required",
        "usage: t.py [-h] --data DATA\nt.py: error: the following arguments are required: --data\n",
    ),
    Case(
        "hydra-key",
        "config-error",
        "is not in struct|Could not override",
        "Could not override 'trainer.n_gpu'.\nTo append to your config use +trainer.n_gpu=8\nKey 'n_gpu' is not in struct\n    full_key: trainer.n_gpu\n\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
        + EXIT_1,
    ),
    Case(
        "hydra-missing",
        "config-error",
        "MissingMandatoryValue",
        trace("omegaconf.errors.MissingMandatoryValue: Missing mandatory value: data.train_files")
        + EXIT_1,
    ),
    Case(
        "pydantic",
        "config-error|python-exception",
        "validation error",
        trace("pydantic_core._pydantic_core.ValidationError: 2 validation errors for TrainConfig")
        + "optimizer.lr\n  Input should be a valid number [type=float_type]\n"
        + EXIT_1,
    ),
    Case(
        "yaml",
        "config-error",
        "ParserError",
        trace("yaml.parser.ParserError: while parsing a block mapping")
        + '  in "c.yaml", line 3, column 1\n'
        + EXIT_1,
    ),
    Case(
        "hf-parser",
        "config-error",
        "HfArgumentParser",
        trace("ValueError: Some keys are not used by the HfArgumentParser: ['learning_rte']")
        + EXIT_1,
    ),
    Case(
        "batch-size",
        "config-error|python-exception",
        "not divisible",
        "[rank0]: "
        + trace(
            "AssertionError: global batch size (100) is not divisible by micro batch size (8) times data parallel size (3)",
            "[rank0]: ",
        )[len("[rank0]: ") :]
        + ELASTIC,
    ),
    Case(
        "sbatch",
        "config-error|unschedulable",
        "Invalid account",
        "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
    ),
    Case(
        "kwarg",
        "config-error|python-exception",
        "unexpected keyword",
        trace(
            "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'"
        )
        + EXIT_1,
    ),
)
IMPORTS = (
    Case(
        "module",
        "import-error",
        "No module named 'deepspeed'",
        trace("ModuleNotFoundError: No module named 'deepspeed'") * 4 + ELASTIC,
    ),
    Case(
        "symbol",
        "import-error",
        "undefined symbol",
        trace(
            "ImportError: /opt/v/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2E"
        )
        + EXIT_1,
    ),
    Case(
        "glibc",
        "import-error",
        "GLIBC",
        trace(
            "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by /opt/v/x.so)"
        )
        + EXIT_1,
    ),
    Case(
        "module-as-main",
        "import-error",
        "No module named",
        "/usr/bin/python3: No module named axolotl.cli\n" + EXIT_1,
    ),
    Case(
        "optional",
        None,
        None,
        "Could not load bitsandbytes native library: libcudart.so.11.0: cannot open shared object file (features disabled, continuing)\nImportError: cannot import name 'x' (ignored by optional plugin loader)\n"
        + STEPS,
    ),
)
ACCESS = (
    Case(
        "gated",
        "auth",
        "401 Client Error",
        trace("huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-68)")
        + "\nCannot access gated repo for url https://huggingface.co/meta-llama/x/resolve/main/config.json.\n"
        + EXIT_1,
    ),
    Case(
        "wandb",
        "auth|config-error",
        "api_key not configured",
        trace(
            "wandb.errors.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])"
        )
        + EXIT_1,
    ),
    Case(
        "openai",
        "auth|judge",
        "Error code: 401",
        "2026-03-01 10:00:00 INFO grader: grading 500 answers\n"
        + trace(
            "openai.AuthenticationError: Error code: 401 - {'error': {'message': 'Incorrect API key provided', 'code': 'invalid_api_key'}}"
        )
        + EXIT_1,
    ),
    Case(
        "registry",
        "auth|container",
        "401 Unauthorized|failed to import",
        "pyxis: importing docker image: nvcr.io/x/y:1\nslurmstepd: error: pyxis: child 5 failed with error code: 1\nslurmstepd: error: pyxis: failed to import docker image\nslurmstepd: error: pyxis: printing enroot log file:\nslurmstepd: error: pyxis:     [INFO] Authenticating with user: <anonymous>\nslurmstepd: error: pyxis:     [ERROR] URL https://nvcr.io/proxy_auth?scope=repository:x/y:pull returned error code: 401 Unauthorized\nslurmstepd: error: pyxis: couldn't start container\n"
        + EXIT_1,
    ),
    Case(
        "aws",
        "auth",
        "NoCredentialsError",
        trace("botocore.exceptions.NoCredentialsError: Unable to locate credentials") + EXIT_1,
    ),
    Case(
        "ssh",
        "auth|network",
        "Permission denied (publickey",
        "alice@login1: Permission denied (publickey,gssapi-with-mic).\nrsync: connection unexpectedly closed (0 bytes received so far) [sender]\n",
    ),
)
NETWORK = (
    Case(
        "refused",
        "network|engine-dead",
        "Connection refused",
        "2026-03-01 10:00:00 INFO retrying request in 8 s\n"
        + trace("httpx.ConnectError: [Errno 111] Connection refused")
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + trace("openai.APIConnectionError: Connection error.")
        + EXIT_1,
    ),
    Case(
        "dns",
        "network",
        "name resolution",
        trace(
            "urllib3.exceptions.NameResolutionError: <urllib3.connection.HTTPSConnection object>: Failed to resolve 'huggingface.co' ([Errno -3] Temporary failure in name resolution)"
        )
        + EXIT_1,
    ),
    Case(
        "hub-down",
        "network",
        "504 Server Error|Gateway",
        trace(
            "requests.exceptions.HTTPError: 504 Server Error: Gateway Time-out for url: https://huggingface.co/api/models/x"
        )
        + EXIT_1,
    ),
    Case(
        "rate",
        "network|quota|auth",
        "429",
        trace(
            "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/datasets/x"
        )
        + EXIT_1,
    ),
    Case(
        "port",
        "network|config-error",
        "already in use|EADDRINUSE",
        trace(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"
        )
        + EXIT_1,
    ),
    Case(
        "polling",
        None,
        None,
        "2026-03-01 10:00:00 WARNING wait: GET http://n1:8000/health -> ConnectionError: [Errno 111] Connection refused (try 1/180)\n"
        * 30
        + STEPS
        + "Evaluation completed\n",
    ),
    Case(
        "wandb-blip",
        None,
        None,
        STEPS
        + "wandb: Network error (ReadTimeout), entering retry loop.\nwandb: Network error resolved after 0:00:17.341000, resuming normal operation.\n"
        + MORE_STEPS,
    ),
)
CONTAINER = (
    Case(
        "tag",
        "container|missing-file|config-error",
        "404 Not Found|failed to import",
        "slurmstepd: error: pyxis: child 5 failed with error code: 1\nslurmstepd: error: pyxis: failed to import docker image\nslurmstepd: error: pyxis:     [ERROR] URL https://registry-1.docker.io/v2/x/manifests/v9 returned error code: 404 Not Found\nslurmstepd: error: pyxis: couldn't start container\n"
        + EXIT_1,
    ),
    Case(
        "image-no-space",
        "disk-full|container",
        "No space left",
        "slurmstepd: error: pyxis: failed to import docker image\nslurmstepd: error: pyxis:     [INFO] Creating squashfs filesystem...\nslurmstepd: error: pyxis:     Write failed because No space left on device\nslurmstepd: error: pyxis: couldn't start container\n"
        + EXIT_1,
    ),
    Case(
        "mount",
        "container|missing-file|config-error",
        "failed to mount",
        "slurmstepd: error: pyxis: container start failed with error code: 1\nslurmstepd: error: pyxis:     enroot-mount: failed to mount: /lustre/x at /raid/enroot/x: No such file or directory\nslurmstepd: error: pyxis:     [ERROR] /etc/enroot/hooks.d/10-mounts.sh exited with return code 1\n"
        + EXIT_1,
    ),
    Case(
        "apptainer",
        "container",
        "FATAL:",
        "FATAL:   Unable to handle docker://x uri: failed to get checksum for docker://x: manifest unknown\n",
    ),
    Case(
        "docker-daemon",
        "sandbox|container|network",
        "Docker daemon",
        trace(
            "docker.errors.DockerException: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
        )
        + EXIT_1,
    ),
)
SCHEDULER = (
    Case(
        "time",
        "walltime",
        "DUE TO TIME LIMIT",
        STEPS
        + "slurmstepd: error: *** JOB 17 ON n1 CANCELLED AT 2026-07-14T21:00:12 DUE TO TIME LIMIT ***\n"
        + trace(
            "torch.distributed.elastic.multiprocessing.api.SignalException: Process 900 got signal: 15"
        )
        + "srun: error: n1: task 0: Terminated\n",
    ),
    Case(
        "time-after-crash-lines",
        "walltime",
        "DUE TO TIME LIMIT",
        STEPS
        + "W0402 14:28:37.478747 40011 torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal, shutting down workers\n"
        + trace("ConnectionResetError: [Errno 104] Connection reset by peer")
        + "slurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2026-07-14T21:00:12 DUE TO TIME LIMIT ***\n",
    ),
    Case(
        "preempted",
        "preempted",
        "DUE TO PREEMPTION",
        STEPS
        + "slurmstepd: error: *** JOB 17 ON n1 CANCELLED AT 2026-07-14T21:00:12 DUE TO PREEMPTION ***\n",
    ),
    Case(
        "node",
        "node-failure",
        "Node failure on|DUE TO NODE FAILURE",
        STEPS
        + "srun: error: Node failure on n9\nslurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2026-07-14T21:00:12 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n",
    ),
    Case(
        "quoted-tail",
        None,
        None,
        "previous attempt 16 ended TIMEOUT, last lines:\n  | slurmstepd: error: *** JOB 16 ON n1 CANCELLED AT 2026-07-14T21:00:12 DUE TO TIME LIMIT ***\n  > torch.OutOfMemoryError: CUDA out of memory.\n"
        + STEPS,
    ),
    Case(
        "earlier-life",
        None,
        None,
        STEPS
        + "slurmstepd: error: *** JOB 16 ON n1 CANCELLED AT 2026-07-14T21:00:12 DUE TO PREEMPTION ***\n"
        + "resuming from step 39\n"
        + MORE_STEPS,
    ),
    Case(
        "k8s",
        "host-oom|sigkill",
        "OOMKilled",
        STEPS
        + "$ kubectl describe pod x\n    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n",
    ),
    Case(
        "evicted",
        "preempted",
        "Evicted",
        STEPS
        + "Status:           Failed\nReason:           Evicted\nMessage:          The node was low on resource: ephemeral-storage.\n",
    ),
)
TRAINING = (
    Case(
        "nan-hf",
        "nan-loss",
        "'grad_norm': nan",
        "{'loss': 2.1, 'grad_norm': 0.7, 'learning_rate': 1e-05, 'epoch': 0.1}\n" * 6
        + "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.2}\n" * 4
        + "{'train_runtime': 12.1, 'train_loss': 0.7, 'epoch': 1.0}\n",
    ),
    Case(
        "nan-plain",
        "nan-loss",
        "loss nan",
        STEPS
        + "2026-03-02 11:00:00 | INFO | step 41/900 | loss nan | grad_norm nan\n2026-03-02 11:01:00 | INFO | step 42/900 | loss nan | grad_norm nan\n",
    ),
    Case(
        "nan-raised",
        "nan-loss|python-exception",
        "Loss is nan",
        STEPS + trace("ValueError: Loss is nan, stopping training", "[rank2]: ") + ELASTIC,
    ),
    Case(
        "nan-scaler",
        "nan-loss",
        "already at minimum",
        STEPS
        + trace(
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run."
        )
        + EXIT_1,
    ),
    Case(
        "nan-one-step",
        None,
        None,
        STEPS
        + "2026-03-02 11:00:00 | INFO | step 41/900 | loss 2.1 | grad_norm nan\n"
        + MORE_STEPS,
    ),
    Case(
        "nan-words",
        None,
        None,
        "check_for_nan_in_loss_and_grad: true\nloss=1.21 dataset=finance_qa\n12 nanoseconds\n|bleu|   nan|±  |   N/A|\n"
        + STEPS,
    ),
    Case(
        "explosion",
        "grad-explosion",
        "grad_norm': 8",
        "".join(f"{{'loss': 2.{i}, 'grad_norm': 1.{i}, 'epoch': 0.{i}}}\n" for i in range(9))
        + "".join(
            f"{{'loss': 9.{i}, 'grad_norm': {840 + 100 * i}.5, 'epoch': 1.{i}}}\n" for i in range(9)
        ),
    ),
    Case(
        "one-spike",
        None,
        None,
        "".join(f"{{'loss': 2.{i}, 'grad_norm': 1.{i}, 'epoch': 0.{i}}}\n" for i in range(9))
        + "{'loss': 2.5, 'grad_norm': 840.5, 'epoch': 1.0}\n"
        + "".join(f"{{'loss': 2.{i}, 'grad_norm': 1.{i}, 'epoch': 1.{i}}}\n" for i in range(1, 12)),
    ),
    Case(
        "large-always",
        None,
        None,
        "".join(
            f"{{'loss': 2.{i % 9}, 'grad_norm': {300 + i}.5, 'epoch': 0.{i}}}\n" for i in range(20)
        ),
    ),
)
AGENTS = (
    Case(
        "agentic-then-oom",
        "cuda-oom",
        OOM,
        "".join(
            f"(entry pid=8) 2026-03-01 10:00:00 | WARNING | Trial t-{i} failed\n"
            + trace(
                f"harbor.llms.base.ContextLengthExceededError: Model q context length exceeded ({i})"
                if i % 2
                else f"harbor.trial.AgentTimeoutError: Agent execution timed out after {i}.0 seconds",
                "(entry pid=8) ",
            )
            for i in range(300)
        )
        + trace(OOM, "(Worker pid=9) ")
        + trace(OOM),
    ),
    Case(
        "agentic-only",
        None,
        None,
        "".join(
            f"(entry pid=8) 2026-03-01 10:00:00 | WARNING | Trial t-{i} failed\n"
            + trace(
                f"harbor.llms.base.ContextLengthExceededError: Model q context length exceeded ({i})"
                if i % 2
                else f"harbor.trial.AgentTimeoutError: Agent execution timed out after {i}.0 seconds",
                "(entry pid=8) ",
            )
            for i in range(300)
        ),
    ),
    Case(
        "trial-assertion",
        None,
        None,
        STEPS
        + "2026-03-01 10:00:00,1 - harbor.trial - WARNING - Trial t__1 failed: AssertionError: 3 != 4\n"
        + MORE_STEPS,
    ),
    Case(
        "warning-runtime-error",
        None,
        None,
        STEPS
        + "2026-03-01 10:00:00,1 - pool - WARNING - worker said RuntimeError: queue full, resubmitted\n"
        + MORE_STEPS,
    ),
    Case(
        "judge-malformed",
        "judge|python-exception",
        "JudgeError",
        "2026-03-01 10:00:00 INFO answers 500/500 written\n"
        + trace("arena.judge.JudgeError: judge returned malformed JSON 20 times in a row")
        + EXIT_1,
    ),
    Case(
        "sandbox-down",
        "sandbox|network",
        "Failed to create sandbox",
        "2026-03-01 10:00:00 INFO starting\n"
        + trace(
            "daytona_sdk.common.errors.DaytonaError: Failed to create sandbox: 503 Service Unavailable"
        )
        + EXIT_1,
    ),
    Case(
        "pytest-green",
        None,
        None,
        "E       AssertionError: loss is nan\nE       torch.OutOfMemoryError: CUDA out of memory.\ntests/test_x.py:19: AssertionError\n=========== 40 passed, 2 xfailed in 61.04s ===========\n",
    ),
    Case(
        "pytest-red",
        "unknown|python-exception",
        None,
        "E       AssertionError: 3 != 4\ntests/test_x.py:19: AssertionError\n=========== 1 failed, 40 passed in 61.04s ===========\n"
        + EXIT_1,
    ),
)
PYTHON = (
    Case(
        "group",
        "python-exception",
        "KeyError: 'uid'",
        STEPS
        + "  + Exception Group Traceback (most recent call last):\n  |   File \"/w/a.py\", line 3, in main\n  |     async with TaskGroup() as g:\n  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n    |   File \"/w/b.py\", line 8, in one\n    |     x = row['uid']\n    | KeyError: 'uid'\n    +------------------------------------\n"
        + EXIT_1,
    ),
    Case(
        "srun-label",
        "python-exception",
        "TypeError: no",
        "".join(f"{i % 4}: step {i} loss 2.1\n" for i in range(30))
        + trace("TypeError: no", "2: ")
        + "srun: error: n13: task 2: Exited with exit code 1\n1: slurmstepd: error: *** STEP 77190.0 ON n10 CANCELLED AT 2026-06-09T09:10:53 ***\nsrun: error: n11: task 1: Terminated\n",
    ),
    Case(
        "kubectl-timestamps",
        "python-exception",
        "RuntimeError: boom",
        "".join(
            f"2026-03-01T10:00:0{i}.123456789Z {line}\n"
            for i, line in enumerate(trace("RuntimeError: boom").splitlines())
        ),
    ),
    Case(
        "chain-first-names-it",
        "python-exception",
        "TypeError: Couldn't cast",
        trace("TypeError: Couldn't cast array of type string to null")
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + trace(
            "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset"
        )
        + ELASTIC,
    ),
    Case(
        "logged-and-went-on",
        None,
        None,
        STEPS
        + "2026-03-01 10:00:00 - monitor - ERROR - sampling failed, will retry in 30 s\n"
        + trace("pynvml.NVMLError_Unknown: Unknown Error")
        + MORE_STEPS,
    ),
    Case(
        "logged-and-ended",
        "python-exception",
        "KeyError: 'x'",
        STEPS
        + "2026-03-01 10:00:00 - main - ERROR - training failed\n"
        + trace("KeyError: 'x'")
        + EXIT_1,
    ),
    Case(
        "after-warning",
        "python-exception",
        "KeyError: 'x'",
        STEPS
        + "2026-03-01 10:00:00 - main - WARNING - resize_token_embeddings skipped (already a multiple of 128)\n"
        + trace("KeyError: 'x'")
        + EXIT_1,
    ),
    Case("running", None, None, STEPS),
)
PREFETCH = 'Traceback (most recent call last):\n  File "/usr/lib/python3.12/threading.py", line 1073, in _bootstrap_inner\n    self.run()\n  File "/w/data.py", line 8, in _fill\n    q.put(next(it))\n'
BARS = "".join(
    f"\r {i}%|#  | {i}/99 [00:{i:02}<01:30,  1.01s/it, loss={2.5 - i / 100:.2f}]"
    for i in range(10, 40)
)
SECOND = (
    Case(
        "triton-resources",
        "cuda-error|python-exception|config-error",
        "OutOfResources",
        trace(
            "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101376."
        )
        + EXIT_1,
    ),
    Case(
        "smi",
        "cuda-error|node-failure",
        "NVIDIA-SMI",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n"
        + EXIT_1,
    ),
    Case(
        "ray-threshold",
        "host-oom",
        "memory usage threshold",
        STEPS
        + "(raylet) Memory on the node (IP: 10.0.0.4, ID: 3d) was 480.19GB / 503.51GB (0.953685), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: 11) because it was the most recently scheduled task.\n"
        + trace(
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."
        ),
    ),
    Case(
        "iostream",
        "disk-full|python-exception",
        "iostream error",
        STEPS + trace("RuntimeError: basic_ios::clear: iostream error") + EXIT_1,
    ),
    Case(
        "openai-quota",
        "quota|auth|network|judge",
        "insufficient_quota",
        trace(
            "openai.RateLimitError: Error code: 429 - {'error': {'message': 'You exceeded your current quota, please check your plan and billing details.', 'type': 'insufficient_quota'}}"
        )
        + EXIT_1,
    ),
    Case(
        "lazy-import",
        "import-error",
        "No module named 'deepspeed'|Failed to import",
        trace("ModuleNotFoundError: No module named 'deepspeed'")
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + trace(
            "RuntimeError: Failed to import transformers.integrations.deepspeed because of the following error (look up to see its traceback):"
        )
        + "No module named 'deepspeed'\n"
        + EXIT_1,
    ),
    Case(
        "execve",
        "missing-file",
        "execve",
        "slurmstepd: error: execve(): train.sh: No such file or directory\nsrun: error: n1: task 0: Exited with exit code 2\n",
    ),
    Case(
        "hub-offline-node",
        "network|missing-file",
        "Failed to resolve|couldn't connect",
        trace(
            "urllib3.exceptions.MaxRetryError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x (Caused by NameResolutionError(\"Failed to resolve 'huggingface.co'\"))"
        )
        + "\nDuring handling of the above exception, another exception occurred:\n\n"
        + trace(
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files."
        )
        + EXIT_1,
    ),
    Case(
        "tyro",
        "config-error",
        "Parsing error|Unrecognized options",
        "╭─ Parsing error ─────────────────╮\n│ Unrecognized options: --optim.lrr │\n│ ───────────────────────────────── │\n│ For full helptext, run trainer -h │\n╰───────────────────────────────────╯\n"
        + "srun: error: n17: task 0: Exited with exit code 2\n",
    ),
    Case(
        "rich-traceback",
        "python-exception",
        "ValueError: rollout",
        STEPS
        + "╭───────────────────── Traceback (most recent call last) ──────────────────────╮\n│ /opt/prime-rl/src/prime_rl/trainer/rl/train.py:522 in train                  │\n│                                                                              │\n│   519 │   │   loss = step(batch)                                             │\n│ ❱ 522 │   │   check(batch)                                                   │\n╰──────────────────────────────────────────────────────────────────────────────╯\nValueError: rollout 17 has no tokens\n"
        + EXIT_1,
    ),
    Case(
        "loguru-diagnose",
        "python-exception",
        "KeyError: 'advantages'",
        "20:18:30 | ERROR | Train loop failed\nTraceback (most recent call last):\n\n  File \"/w/main.py\", line 9, in <module>\n    train(cfg)\n    │     └ Config()\n    └ <function train at 0x7f>\n\n> File \"/w/train.py\", line 44, in train\n    adv = batch['advantages']\n          └ {}\n\nKeyError: 'advantages'\n"
        + EXIT_1,
    ),
    Case(
        "remote-traceback",
        "python-exception",
        "KeyError: 'text'",
        'multiprocess.pool.RemoteTraceback: \n"""\n'
        + trace("KeyError: 'text'", path="/w/map.py")
        + '"""\n\nThe above exception was the direct cause of the following exception:\n\n'
        + trace("KeyError: 'text'")
        + EXIT_1,
    ),
    Case(
        "recorded-in-summary",
        "python-exception",
        "ValueError: bad vocabulary",
        STEPS
        + ELASTIC.replace(
            "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n",
            '  traceback : Traceback (most recent call last):\n    File "/w/train.py", line 3, in wrapper\n      return f()\n    File "/w/train.py", line 9, in main\n      check()\n  ValueError: bad vocabulary: 151936\n  \n',
        ),
    ),
    Case(
        "nan-in-bar",
        "nan-loss",
        "loss=nan",
        BARS
        + "".join(
            f"\r {i}%|#  | {i}/99 [00:{i:02}<01:30,  1.01s/it, loss=nan]" for i in range(40, 60)
        )
        + "\n",
    ),
    Case(
        "nan-prime",
        "nan-loss",
        "Loss nan",
        "".join(
            f"20:18:{i} SUCCESS Step {i} |  34.72s | Loss 0.01{i} | Entropy 0.44 | Grad. Norm 0.1566\n"
            for i in range(10, 20)
        )
        + "".join(
            f"20:18:{i} SUCCESS Step {i} |  34.72s | Loss nan | Entropy nan | Grad. Norm nan\n"
            for i in range(20, 24)
        ),
    ),
    Case(
        "nan-held-out",
        None,
        None,
        STEPS
        + "2026-03-02 11:00:00 | INFO | validation loss nan | step 40\n{'eval_loss': nan, 'eval_runtime': 3.1, 'epoch': 1.0}\n2026-03-02 11:00:00 | INFO | val/loss: nan\n",
    ),
    Case(
        "k8s-exit-code",
        "sigkill|host-oom",
        "137",
        STEPS
        + "    State:          Terminated\n      Reason:       Error\n      Exit Code:    137\n",
    ),
    Case(
        "wandb-cli",
        "auth",
        "not logged in",
        "wandb: ERROR Error while calling W&B API: user is not logged in (<Response [401]>)\n"
        + trace("wandb.errors.errors.CommError: user is not logged in")
        + EXIT_1,
    ),
    Case(
        "git",
        "auth|network",
        "Authentication failed",
        "remote: HTTP Basic: Access denied\nfatal: Authentication failed for 'https://git.example/x.git/'\n"
        + EXIT_1,
    ),
    Case(
        "srun-resources",
        "config-error|unschedulable",
        "More processors requested",
        "srun: error: Unable to create step for job 99: More processors requested than permitted\n",
    ),
    Case(
        "verl-gpus",
        "config-error|python-exception|unschedulable",
        "total desired GPUs",
        trace("ValueError: Total available GPUs 8 is less than total desired GPUs 16")
        + "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
    ),
    Case(
        "agent-command-exit",
        None,
        None,
        STEPS
        + "2026-03-01 10:00:00 - harbor.trial - INFO - Trial t__1: command finished with exit code 1\n2026-03-01 10:00:01 - harbor.trial - INFO - Trial t__1: exit code: 137\n",
    ),
    Case(
        "service-hiccup-at-the-end",
        None,
        None,
        STEPS
        + "2026-03-02 11:00:00,1 - uploader - ERROR - requests.exceptions.ConnectionError: Max retries exceeded with url: /x\n"
        + "2026-03-02 11:00:05 | INFO | step 40/900 | loss 2.1\n2026-03-02 11:00:09 | INFO | saving\n2026-03-02 11:00:10 | INFO | saved\n",
    ),
    Case(
        "helper-killed-after-end",
        None,
        None,
        STEPS
        + "Training completed. Do not forget to share your model\n./run.sh: line 30: 5512 Terminated              nvidia-smi dmon -o T > gpu.log\n./run.sh: line 31: 5513 Killed                  ./watch.sh\n",
    ),
    Case(
        "two-lives",
        "disk-full",
        "No space left",
        "=== launching run alpha on n17\n"
        + STEPS
        + trace(OOM)
        + EXIT_1
        + "=== launching run alpha on n18\n"
        + trace("OSError: [Errno 28] No space left on device: '/tmp/x'")
        + EXIT_1,
    ),
    Case(
        "second-life-runs",
        None,
        None,
        "=== launching run alpha on n17\n"
        + STEPS
        + trace(OOM)
        + EXIT_1
        + "=== launching run alpha on n18\nloading\n",
    ),
    Case(
        "elastic-restarts",
        None,
        None,
        STEPS
        + trace("RuntimeError: flaky", "[rank1]: ")
        + "W0301 10:41:02.1 1 torch/distributed/elastic/agent/server/api.py:1] Worker group FAILED. 2/3 attempts left; will restart worker group\n"
        + MORE_STEPS,
    ),
    Case(
        "async-never-retrieved",
        "python-exception",
        "KeyError: 'prompt'",
        STEPS
        + "Task exception was never retrieved\nfuture: <Task finished name='Task-7' coro=<fill() done> exception=KeyError('prompt')>\n"
        + trace("KeyError: 'prompt'")
        + EXIT_1,
    ),
    Case(
        "prefetch-then-timeout",
        "python-exception",
        "RuntimeError: shard 9",
        STEPS
        + "Exception in thread Thread-3 (_fill):\n"
        + PREFETCH
        + "RuntimeError: shard 9 is empty\n"
        + MORE_STEPS
        + "[rank0]:[E301 11:44:30.941975491 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=971, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600007 milliseconds before timing out.\n",
    ),
    Case(
        "crlf-and-nul",
        "cuda-oom",
        "CUDA out of memory",
        (STEPS + "\0\0\0" + trace(OOM)).replace("\n", "\r\n"),
    ),
    Case(
        "conda-plain",
        "import-error",
        "ModuleNotFoundError",
        "(base) loading conda\n" + trace("ModuleNotFoundError: No module named 'trl'"),
    ),
    Case(
        "docker-logs-stream",
        "python-exception",
        "AssertionError: rank",
        "".join(
            f"2026-03-01T10:00:0{i}.1Z stderr F {line}\n"
            for i, line in enumerate(trace("AssertionError: rank 3 has other weights").splitlines())
        ),
    ),
    Case(
        "deepspeed-stderr-prefix",
        "cuda-oom",
        "CUDA out of memory",
        "".join(f"stderr: {line}\n" for line in trace(OOM).splitlines())
        + "stderr: [2026-03-01 10:00:00,1] [ERROR] [launch.py:321:sigkill_handler] ['python3', '--local_rank=3'] exits with return code = 1\n",
    ),
    Case(
        "slurm-mem-limit",
        "host-oom",
        "exceeded memory limit",
        STEPS
        + "slurmstepd: error: Job 71 exceeded memory limit (512000M > 500000M), being killed\nslurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2026-03-01T10:00:00 ***\n",
    ),
    Case(
        "std-bad-alloc",
        "host-oom|unknown",
        "bad_alloc",
        STEPS
        + "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n./go.sh: line 9: 771 Aborted                 (core dumped) ./tokenize\n",
    ),
    Case(
        "abort",
        "unknown|segfault",
        "Aborted|terminate called",
        STEPS
        + "terminate called after throwing an instance of 'std::runtime_error'\n  what():  queue broke\n./go.sh: line 9: 771 Aborted                 (core dumped) ./serve\n",
    ),
    Case(
        "ray-teardown",
        None,
        None,
        STEPS
        + "\r(TaskRunner pid=7) Training Progress: 100%|##########| 80/80 [2:04:10<00:00, 93.00s/it]\n(WorkerDict pid=9) *** SIGTERM received at time=1768608489 on cpu 17 ***\n(raylet) A worker died or was killed while executing a task by an unexpected system error.\n",
    ),
    Case(
        "entropy-not-computed",
        None,
        None,
        "".join(
            f"step:{i} - actor/pg_loss:0.0{i} - actor/entropy:nan - actor/grad_norm:0.3{i}\n"
            for i in range(10, 30)
        ),
    ),
    Case(
        "sigterm-ray-midway",
        "sigterm",
        "SIGTERM received",
        STEPS
        + "\r(TaskRunner pid=7) Training Progress:  12%|#         | 10/80 [2:04:10<00:00, 93.00s/it]\n(WorkerDict pid=9) *** SIGTERM received at time=1768608489 on cpu 17 ***\n",
    ),
    Case("oom-killed-line", "host-oom", "OOM Killed.", STEPS + "OOM Killed.\n"),
    Case(
        "nan-placeholder",
        None,
        None,
        "2026-03-01 10:00:00 | INFO | step 0/900 | loss nan | grad_norm nan\n" + STEPS,
    ),
    Case(
        "compile-fallback",
        None,
        None,
        STEPS
        + "[2026-03-01 10:00:00,1] torch._dynamo.convert_frame: [WARNING] WON'T CONVERT forward due to: \n"
        + trace("torch._dynamo.exc.BackendCompilerFailed: inductor raised")
        + MORE_STEPS,
    ),
    Case(
        "pip-noise",
        None,
        None,
        "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed. This behaviour is the source of the following dependency conflicts.\nfatal: not a git repository (or any of the parent directories): .git\n"
        + STEPS,
    ),
)
CASES = (
    *GPU,
    *MEMORY,
    *COLLECTIVES,
    *ENGINES,
    *RAY,
    *NATIVE,
    *FILES,
    *SETTINGS,
    *IMPORTS,
    *ACCESS,
    *NETWORK,
    *CONTAINER,
    *SCHEDULER,
    *TRAINING,
    *AGENTS,
    *PYTHON,
    *SECOND,
)
