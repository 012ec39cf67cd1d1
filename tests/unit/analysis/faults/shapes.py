"""Logs as tools print them, whole: prefixes, summaries, words before and after. What broke, and a
part of the line that says so (several that are right are joined by ` || `); None where nothing broke.
"""

from tests.unit.analysis.faults.variations import ELASTIC, MORE_STEPS, STEPS, Case, trace


def framed(
    message: str,
    *,
    prefix: str = "",
    head: str = "",
    frames: tuple[tuple[str, str], ...] = (("/w/proj/run.py", "main"),),
) -> str:
    """A traceback; each line goes after `prefix`, the header also after `head`."""
    lines = [f"{head}Traceback (most recent call last):"]
    for number, (path, function) in enumerate(frames):
        lines += [f'  File "{path}", line {71 + number}, in {function}', "    return call(*args)"]
        lines += ["           ^^^^^^^^^^^"]
    return "".join(f"{prefix}{line}\n" for line in (*lines, *message.split("\n")))


LIB = "/opt/venv/lib/python3.12/site-packages"
VLLM = ((f"{LIB}/vllm/v1/engine/core.py", "run_engine_core"), (f"{LIB}/vllm/v1/worker.py", "step"))
SGL = ((f"{LIB}/sglang/srt/managers/scheduler.py", "run_scheduler_process"),)
RAY = ((f"{LIB}/ray/_private/worker.py", "get_objects"),)
CHAIN = "\nDuring handling of the above exception, another exception occurred:\n\n"
DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
WATCHDOG = (
    "[rank{r}]:[E415 13:21:26.967375581 ProcessGroupNCCL.cpp:616] [Rank {r}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=876319, OpType=BROADCAST, NumelIn=8, NumelOut=8, "
    "Timeout(ms)=600000) ran for 600089 milliseconds before timing out.\n"
    "[rank{r}]:[E415 13:21:26.967555843 ProcessGroupNCCL.cpp:1785] [PG ID 1 PG GUID 2 Rank {r}] "
    "Exception (either an error or timeout) detected by watchdog at work: 876319, last enqueued NCCL "
    "work: 876319, last completed NCCL work: 876318.\n"
    "[rank{r}]:[E415 13:21:27.1 ProcessGroupNCCL.cpp:630] [Rank {r}] Some NCCL operations have failed "
    "or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run "
    "on corrupted/incomplete data.\n"
    "[rank{r}]:[E415 13:21:27.1 ProcessGroupNCCL.cpp:636] [Rank {r}] To avoid data inconsistency, we "
    "are taking the entire process down.\n"
    "terminate called after throwing an instance of 'c10::DistBackendError'\n"
    "  what():  [PG ID 1 PG GUID 2 Rank {r}] Process group watchdog thread terminated with exception\n"
)
ACTOR_DIED = (
    "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
    "\tclass_name: create_colocated_worker_cls.<locals>.WorkerDict\n\tactor_id: d9cc467228965f31cb6d\n"
    "\tpid: 20174\n\tname: Zap04XWorkerDict_0:1\n\tnamespace: de88eeeb-9347-44bf\n\tip: 10.164.37.106\n"
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit "
    "detail: Worker unexpectedly exits with a connection error code 2. End of file. There are some "
    "potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. "
    "(2) ray stop --force is called. (3) The worker is crashed unexpectedly due to SIGSEGV or other "
    "unexpected errors."
)
RAYLET_DIED = (
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. To "
    "troubleshoot the problem, check the logs for the dead worker. RayTask ID: ffffffffffffffffd155 "
    "Worker ID: 38790ac22c30 Node ID: f3d197df Worker IP address: 10.164.204.17 Worker port: 10003 Worker "
    "PID: 4156 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a "
    "connection error code 2. End of file. There are some potential root causes. (1) The process is "
    "killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called.\n"
)
HYDRA = "\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n"
PYXIS = "slurmstepd: error: pyxis: "
PYXIS_START = (
    "pyxis: importing docker image: nvcr.io/nvidia/pytorch:26.01-py3\n"
    f"{PYXIS}child 52574 failed with error code: 1\n{PYXIS}failed to import docker image\n"
    f"{PYXIS}printing enroot log file:\n{PYXIS}    [INFO] Querying registry for permission grant\n"
)
PYXIS_END = (
    f"{PYXIS}couldn't start container\n"
    "slurmstepd: error: spank: required plugin spank_pyxis.so: task_init() failed with rc=-1\n"
    "slurmstepd: error: Failed to invoke spank plugin stack\n"
    "srun: error: n17: task 0: Exited with exit code 1\n"
)
POSTS = "".join(
    f'INFO:     10.0.0.4:{40000 + n} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
    for n in range(60)
)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 448.00 MiB. GPU 7 has a total capacity of 95.00 GiB of which 210.19 MiB is free."

GPU = (
    Case(
        "sglang-capture-graph",
        "cuda-oom",
        "torch.OutOfMemoryError || Capture cuda graph failed: CUDA out of memory",
        "[2026-03-01 10:00:00 TP0] Capture cuda graph begin. This can take up to several minutes.\n"
        + framed(OOM, head="[2026-03-01 10:00:01 TP0] Scheduler hit an exception: ", frames=SGL)
        + CHAIN
        + framed(
            f"Exception: Capture cuda graph failed: {OOM[24:]}\nPossible solutions:", frames=SGL
        )
        + "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n\n"
        "[2026-03-01 10:00:02] Received sigquit from a child process. It usually means the child "
        "failed.\nKilled\n",
    ),
    Case(
        "watchdog-illegal-access",
        "cuda-error",
        "illegal memory access",
        STEPS
        + "[rank3]:[E301 10:41:00.1 ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 3] "
        "Process group watchdog thread terminated with exception: CUDA error: an illegal memory access "
        "was encountered\nCUDA kernel errors might be asynchronously reported at some other API call, so "
        "the stacktrace below might be incorrect.\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        "  what():  [PG ID 0 PG GUID 0(default_pg) Rank 3] Process group watchdog thread terminated with "
        "exception: CUDA error: an illegal memory access was encountered\n"
        + ELASTIC.replace("exitcode: 1", "exitcode: -6").replace("exitcode  : 1", "exitcode  : -6"),
    ),
    Case(
        "three-ranks-in-one-line",
        "cuda-oom",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "Loading checkpoint shards: 100%|##########| 4/4 [00:09<00:00,  2.31s/it]\n"
        "RuntimeErrorRuntimeErrorRuntimeError: : : CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling "
        "`cublasCreate(handle)`CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"
        + ELASTIC,
    ),
    Case(
        "peer-memory",
        "cuda-error|engine-dead",
        "Invalid access of peer GPU memory",
        framed(
            "torch.AcceleratorError: CUDA error: Invalid access of peer GPU memory over nvlink or a "
            "hardware error\nCUDA kernel errors might be asynchronously reported at some other API call, "
            "so the stacktrace below might be incorrect.\nFor debugging consider passing "
            "CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
            head="[2026-03-01 13:13:14 TP0] Scheduler hit an exception: ",
            frames=SGL,
        )
        + "\n[2026-03-01 13:13:15] SIGQUIT received. signum=None, frame=None. It usually means one child "
        "failed.\n",
    ),
    Case(
        "nccl-passes-on-oom",
        "cuda-oom",
        "Cuda failure 2 'out of memory' || unhandled cuda error",
        framed(
            "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/"
            "NCCLUtils.cpp:77, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version "
            "2.26.2\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 "
            "'out of memory'",
            prefix="(VllmWorker rank=3 pid=15164) ERROR 06-19 07:06:13 [multiproc_executor.py:527] ",
            frames=VLLM,
        )
        + "ERROR 06-19 07:06:13 [core.py:515] EngineCore failed to start.\n",
    ),
    Case(
        "cudnn-alloc",
        "cuda-oom|cuda-error",
        "CUDNN_STATUS_ALLOC_FAILED",
        STEPS + trace("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ),
    Case(
        "hip-oom",
        "cuda-oom",
        "HIP out of memory",
        STEPS
        + trace(
            "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 3.00 GiB. GPU 1 has a total "
            "capacity of 63.98 GiB of which 1.90 GiB is free.",
            "[rank1]: ",
        )
        + "srun: error: nid005021: task 1: Exited with exit code 1\n",
    ),
    Case(
        "launch-failure-and-xid",
        "cuda-error",
        "unspecified launch failure || NVRM: Xid",
        STEPS
        + trace("RuntimeError: CUDA error: unspecified launch failure", "[rank6]: ")
        + "[88123.1] NVRM: Xid (PCI:0000:9b:00): 31, pid=88121, name=python, Ch 00000008, intr 10000000. "
        "MMU Fault: ENGINE GRAPHICS faulted @ 0x7f2a_1c000000.\n" + ELASTIC,
    ),
    Case(
        "driver-library-mismatch",
        "cuda-error|container|node-failure",
        "Driver/library version mismatch || No CUDA GPUs are available",
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.124\n"
        + trace("RuntimeError: No CUDA GPUs are available"),
    ),
    Case(
        "jax-oom",
        "cuda-oom",
        "RESOURCE_EXHAUSTED",
        "I0301 10:00:00.1 140 train.py:120] step 12 loss 2.31\n"
        "2026-03-01 10:00:01.1: W external/xla/xla/tsl/framework/bfc_allocator.cc:497] Allocator "
        "(GPU_0_bfc) ran out of memory trying to allocate 12.00GiB (rounded to 12884901888)\n"
        + framed(
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 12884901888 bytes."
        ),
    ),
    Case(
        "oom-in-accelerate-then-called-process",
        "cuda-oom",
        "torch.OutOfMemoryError",
        STEPS
        + trace(OOM)
        + " 12%|#2        | 40/900 [10:12<3:12:01, 13.1s/it]\n"
        + framed(
            "subprocess.CalledProcessError: Command '['/opt/venv/bin/python', '-m', 'axolotl.cli.train', "
            "'c.yml']' returned non-zero exit status 1.",
            frames=((f"{LIB}/accelerate/commands/launch.py", "simple_launcher"),),
        )
        + "[2026-03-01 12:49:32,482] [ERROR] [axolotl.cli.main.train:184] [PID:22098] [RANK:0] Failed to "
        "train/fine-tune config 'c.yml': Command '['accelerate', 'launch', '-m', 'axolotl.cli.train', "
        "'c.yml']' returned non-zero exit status 1.\n",
    ),
    Case(
        "peers-gloo-before-the-oom",
        "cuda-oom",
        "torch.OutOfMemoryError",
        STEPS
        + trace(
            "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by "
            "peer [10.1.2.3]:9201",
            "[rank0]: ",
        )
        + trace(OOM, "[rank5]: ")
        + ELASTIC,
    ),
)

COLLECTIVES = (
    Case(
        "watchdog-on-all-ranks",
        "nccl-timeout",
        "Watchdog caught",
        STEPS + WATCHDOG.format(r=0) + WATCHDOG.format(r=1) + WATCHDOG.format(r=5) + ELASTIC,
    ),
    Case(
        "watchdog-after-a-dead-ray-worker",
        "ray-died|host-oom|sigkill",
        "A worker died or was killed || ActorDiedError",
        "make_experience:   0%|          | 0/128 [10:02<?, ?it/s]\n"
        + RAYLET_DIED
        + "(ReferenceModelRayActor pid=4347, ip=10.164.204.17) "
        + WATCHDOG.format(r=1).split("\n")[0]
        + "\n"
        + framed(ACTOR_DIED, frames=RAY),
    ),
    Case(
        "no-interface",
        "network|config-error",
        "no socket interface found || ncclInternalError || DistBackendError",
        trace(
            "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
            "ProcessGroupNCCL.cpp:1691, internal error - please report this issue to the NCCL developers, "
            "NCCL version 2.21.5\nncclInternalError: Internal check failed.\nLast error:\nBootstrap : no "
            "socket interface found",
            "[rank0]: ",
        )
        + ELASTIC,
    ),
    Case(
        "connect-refused-in-nccl",
        "network",
        "failed : Connection refused || ncclSystemError || DistBackendError",
        trace(
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled system error "
            "(run with NCCL_DEBUG=INFO for details), NCCL version 2.27.3\nncclSystemError: System call (e.g. "
            "socket, malloc) or external library call failed or device error.\nLast error:\n"
            "socketStartConnect: Connect to 10.0.0.3<41523> failed : Connection refused"
        ),
    ),
    Case(
        "gloo-full-mesh",
        "network",
        "connectFullMesh",
        trace(
            "RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/"
            "pair.cc:144] no error"
        ),
    ),
    Case(
        "clients-did-not-join",
        "network|nccl-timeout",
        "clients joined",
        trace(
            "torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 15/16 "
            "clients joined."
        )
        + "srun: error: n03: task 1: Exited with exit code 1\n",
    ),
    Case(
        "client-socket-timed-out",
        "network|nccl-timeout",
        "client socket has timed out",
        "[W301 10:00:00.1 socket.cpp:767] [c10d] The client socket has failed to connect to [n01]:29500 "
        "(errno: 110 - Connection timed out).\n"
        + trace(
            "torch.distributed.DistNetworkError: The client socket has timed out after 900000ms while "
            "trying to connect to (n01, 29500)."
        ),
    ),
    Case(
        "data-thread-died-long-before",
        "python-exception",
        "KeyError: 'image'",
        STEPS
        + "Exception in thread Thread-7 (_pin_memory_loop):\n"
        + trace("KeyError: 'image'").replace("<module>", "_loop")
        + STEPS[-90:]
        + WATCHDOG.format(r=0)
        + WATCHDOG.format(r=3)
        + ELASTIC,
    ),
    Case(
        "barrier-timed-out",
        "nccl-timeout",
        "wait timeout after || Timed out waiting",
        trace(
            "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving "
            "ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: wait "
            "timeout after 600000ms, keys: /default_pg/0//cuda//0"
        ),
    ),
)

MEMORY = (
    Case(
        "torchrun-then-slurm",
        "host-oom",
        "oom_kill event",
        STEPS
        + ELASTIC.replace("exitcode: 1", "exitcode: -9").replace("exitcode  : 1", "exitcode  : -9")
        + "slurmstepd: error: Detected 1 oom_kill event in StepId=11300781.0. Some of the step tasks have "
        "been OOM Killed.\nsrun: error: sdumont6156: task 0: Out Of Memory\n",
    ),
    Case(
        "shell-then-cgroup",
        "host-oom",
        "oom-kill event(s)",
        "Epoch: [0][511/1736]\t Loss 0.5117 MAE 0.6075 RMSE 0.7153\n"
        "/var/spool/slurmd/job00191/slurm_script: line 28:  8156 Killed                  python3 main.py "
        "--epochs 400\nslurmstepd: error: Detected 1 oom-kill event(s) in StepId=191.batch cgroup. Some of "
        "your processes may have been killed by the cgroup out-of-memory handler.\n",
    ),
    Case(
        "spawned-process-killed",
        "sigkill|host-oom",
        "SIGKILL",
        STEPS
        + framed(
            "torch.multiprocessing.spawn.ProcessExitedException: process 3 terminated with signal SIGKILL"
        ),
    ),
    Case(
        "raylet-pressure",
        "host-oom",
        "killed due to memory pressure || low on memory",
        "(TaskRunner pid=88) step:41 - actor/pg_loss:0.1 - timing_s/step:61.0\n"
        "(raylet) [2026-03-01 07:53:15,049 E 15120 15120] (raylet) node_manager.cc:3193: 1 Workers (tasks / "
        "actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: "
        "3d1f, IP: 10.0.0.3) over the last time period.\n"
        + RAYLET_DIED
        + framed(ACTOR_DIED, frames=RAY)
        + HYDRA,
    ),
    Case(
        "loader-bus-error",
        "host-oom|segfault",
        "shm || Bus error",
        STEPS
        + "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
        "memory (shm).\n"
        + trace(
            "RuntimeError: DataLoader worker (pid 231) is killed by signal: Bus error. It is possible "
            "that dataloader's workers are out of shared memory. Please try to raise your shared memory limit."
        ),
    ),
    Case(
        "pod-was-killed",
        "host-oom",
        "OOMKilled",
        STEPS + "Name:         sft-x7k2p\nStatus:       Failed\n    State:          Terminated\n"
        "      Reason:       OOMKilled\n      Exit Code:    137\n",
    ),
    Case(
        "arrow-cannot-allocate",
        "host-oom",
        "Cannot allocate memory || malloc of size",
        trace("pyarrow.lib.ArrowMemoryError: malloc of size 8589934592 failed"),
    ),
    Case(
        "fork-failed",
        "host-oom",
        "Cannot allocate memory",
        STEPS + trace("OSError: [Errno 12] Cannot allocate memory"),
    ),
)

RAY_CASES = (
    Case(
        "verl-actor-died",
        "ray-died|host-oom|sigkill",
        "A worker died or was killed || ActorDiedError",
        "(TaskRunner pid=18948) step:12 - actor/pg_loss:0.1\n"
        + RAYLET_DIED
        + "Error executing job with overrides: ['data.train_batch_size=64']\n"
        + framed(
            "ray.exceptions.RayTaskError(ActorDiedError): ray::TaskRunner.run() (pid=18948, "
            "ip=10.164.37.106, actor_id=2dbcd328, repr=<main_ppo.TaskRunner object at 0x7f852c0b7490>)\n"
            '  File "/w/verl/trainer/main_ppo.py", line 215, in run\n    trainer.fit()\n'
            + ACTOR_DIED,
            frames=RAY,
        )
        + HYDRA,
    ),
    Case(
        "task-error-carries-a-key-error",
        "python-exception",
        "KeyError: 'raw_prompt_ids'",
        "Error executing job with overrides: ['algorithm.adv_estimator=grpo']\n"
        + framed(
            "ray.exceptions.RayTaskError(KeyError): ray::TaskRunner.run() (pid=77, ip=10.0.0.3, "
            "actor_id=aa, repr=<main_ppo.TaskRunner object at 0x7f>)\n"
            '  File "/w/verl/trainer/ppo/ray_trainer.py", line 952, in fit\n    gen = batch.pop(keys)\n'
            "KeyError: 'raw_prompt_ids'",
            frames=RAY,
        )
        + HYDRA,
    ),
    Case(
        "sigsegv-in-a-worker",
        "segfault",
        "SIGSEGV received",
        "(WorkerDict pid=270237) *** SIGSEGV received at time=1753768608 on cpu 17 ***\n"
        "(WorkerDict pid=270237) PC: @     0x7f3ab96a49fc  (unknown)  (unknown)\n"
        "(WorkerDict pid=270237) [2026-03-01 08:58:32,122 E 270237 270370] logging.cc:115: Stack trace: \n"
        + RAYLET_DIED
        + framed(ACTOR_DIED, frames=RAY),
    ),
    Case(
        "gcs-unreachable",
        "ray-died|network",
        "Failed to connect to GCS",
        "[2026-03-01 10:00:00,123 C 8812 8812] gcs_rpc_client.h:187: Failed to connect to GCS within 60 "
        "seconds. GCS may have been killed. It's either GCS is terminated by `ray stop` or is killed "
        "unexpectedly.\n",
    ),
    Case(
        "engine-worker-of-ray-out-of-memory",
        "cuda-oom",
        "torch.OutOfMemoryError",
        "(AsyncVLLMInferenceEngine pid=31036) (RayWorkerWrapper pid=17336) INFO loading\n"
        + framed(
            OOM,
            prefix="(AsyncVLLMInferenceEngine pid=31037) ERROR 07-14 23:04:11 [core.py:586] ",
            frames=VLLM,
        )
        + framed(
            "ray.exceptions.ActorDiedError: The actor died because of an error raised in its creation task, "
            "ray::AsyncVLLMInferenceEngine.__init__() (pid=31037, ip=10.0.0.2)",
            frames=RAY,
        ),
    ),
)

ENGINES = (
    Case(
        "vllm-worker-illegal-access",
        "cuda-error|engine-dead",
        "illegal memory access",
        POSTS
        + framed(
            "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
            prefix="(EngineCore_DP0 pid=59619) ERROR 10-15 08:32:29 [core.py:708] ",
            head="EngineCore encountered a fatal error.\n(EngineCore_DP0 pid=59619) ERROR 10-15 08:32:29 "
            "[core.py:708] ",
            frames=VLLM,
        )
        + "(APIServer pid=1) ERROR 10-15 08:32:29 [async_llm.py:480] AsyncLLM output_handler failed.\n"
        + framed(
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace "
            "(above) for the root cause.",
            prefix="(APIServer pid=1) ERROR 10-15 08:32:29 [async_llm.py:480] ",
            frames=VLLM,
        )
        + '(APIServer pid=1) INFO:     10.0.0.4:40001 - "POST /v1/chat/completions HTTP/1.1" 500 Internal '
        "Server Error\n(APIServer pid=1) INFO:     Shutting down\n",
    ),
    Case(
        "vllm-sequence-does-not-fit",
        "cuda-oom|config-error|engine-dead",
        "max seq len",
        framed(
            "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that "
            "can be stored in KV cache (43264). Try increasing `gpu_memory_utilization` or decreasing "
            "`max_model_len` when initializing the engine.",
            prefix="ERROR 07-10 14:49:36 [core.py:515] ",
            head="EngineCore failed to start.\nERROR 07-10 14:49:36 [core.py:515] ",
            frames=VLLM,
        )
        + framed(
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
        ),
    ),
    Case(
        "vllm-worker-init-says-why-above",
        "import-error",
        "flash_attn",
        framed(
            "ModuleNotFoundError: No module named 'flash_attn.ops'",
            prefix="(VllmWorker rank=0 pid=2445156) ERROR 06-29 19:19:59 [multiproc_executor.py:487] ",
            frames=VLLM,
        )
        + framed(
            "Exception: WorkerProc initialization failed due to an exception in a background process. See "
            "stack trace for root cause.",
            prefix="ERROR 06-29 19:20:00 [core.py:515] ",
            frames=VLLM,
        )
        + "Process EngineCore_0:\n"
        + framed(
            "Exception: WorkerProc initialization failed due to an exception in a background process. "
            "See stack trace for root cause."
        ),
    ),
    Case(
        "vllm-architecture",
        "config-error|engine-dead",
        "validation error",
        framed(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n  Value "
            "error, Model architectures ['FooForCausalLM'] are not supported for now. Supported "
            "architectures: dict_keys(['A', 'B'])"
        ),
    ),
    Case(
        "sglang-watchdog",
        "engine-dead|nccl-timeout",
        "atchdog timeout",
        "[2026-03-01 10:00:00 TP0] Decode batch. #running-req: 12, #token: 8812, token usage: 0.41\n"
        "[2026-03-01 10:05:01 TP0] Watchdog timeout (self.watchdog_timeout=300)\n"
        "[2026-03-01 10:05:06] Received sigquit from a child process. It usually means the child failed.\n"
        "Killed\n",
    ),
    Case(
        "client-of-a-dead-server",
        "engine-dead|network",
        "Connection refused || server process || ConnectError",
        "waiting for server http://127.0.0.1:8000/health\nERROR server process 118 died before becoming "
        "healthy\n" + framed("httpx.ConnectError: [Errno 111] Connection refused"),
    ),
)

ACCESS = (
    Case(
        "gated",
        "auth",
        "GatedRepoError || 403 Client Error || gated repo",
        framed(
            "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: "
            "https://huggingface.co/meta-llama/Llama-3.1-8B/resolve/main/config.json"
        )
        + DIRECT
        + framed(
            "huggingface_hub.errors.GatedRepoError: 403 Client Error. (Request ID: Root=1-68a)\n\nCannot "
            "access gated repo for url https://huggingface.co/meta-llama/Llama-3.1-8B/resolve/main/"
            "config.json.\nAccess to model meta-llama/Llama-3.1-8B is restricted and you are not in the "
            "authorized list."
        )
        + DIRECT
        + framed(
            "OSError: You are trying to access a gated repo.\nMake sure to have access to it at "
            "https://huggingface.co/meta-llama/Llama-3.1-8B."
        ),
    ),
    Case(
        "private-repository",
        "auth|missing-file",
        "401 Client Error || RepositoryNotFoundError || is not a local folder",
        framed(
            "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-68)\n\n"
            "Repository Not Found for url: https://huggingface.co/acme/secret/resolve/main/config.json.\n"
            "Please make sure you specified the correct `repo_id` and `repo_type`.\nInvalid username or "
            "password."
        ),
    ),
    Case(
        "wandb-403",
        "auth|permission",
        "permission",
        "wandb: ERROR Error while calling W&B API: permission denied (<Response [403]>)\n"
        + framed(
            "wandb.errors.errors.CommError: It appears that you do not have permission to access the "
            "requested resource. Please reach out to the project owner to grant you access."
        ),
    ),
    Case(
        "wandb-key-length",
        "auth",
        "API key must be 40 characters",
        framed("ValueError: API key must be 40 characters long, yours was 39"),
    ),
    Case(
        "git-asks-for-a-name",
        "auth",
        "could not read Username",
        "Cloning into 'proj'...\nfatal: could not read Username for 'https://github.com': terminal prompts "
        "disabled\nexit code: 128\n",
    ),
    Case(
        "s3-forbidden",
        "auth|permission",
        "HeadObject",
        framed(
            "botocore.exceptions.ClientError: An error occurred (403) when calling the HeadObject "
            "operation: Forbidden"
        ),
    ),
    Case(
        "gcs-forbidden",
        "auth|permission",
        "storage.objects.get",
        framed(
            "google.api_core.exceptions.Forbidden: 403 GET https://storage.googleapis.com/storage/v1/b/x: "
            "svc@p.iam.gserviceaccount.com does not have storage.objects.get access to the Google Cloud "
            "Storage object."
        ),
    ),
    Case(
        "docker-unauthorized",
        "auth|container",
        "unauthorized",
        "Unable to find image 'ghcr.io/acme/train:3' locally\ndocker: Error response from daemon: Head "
        "\"https://ghcr.io/v2/acme/train/manifests/3\": unauthorized.\nSee 'docker run --help'.\n",
    ),
    Case(
        "kubelet-401",
        "auth|container",
        "401 Unauthorized",
        '  Warning  Failed     2m   kubelet  Failed to pull image "nvcr.io/acme/x:1": failed to pull and '
        'unpack image "nvcr.io/acme/x:1": failed to resolve reference "nvcr.io/acme/x:1": failed to '
        "authorize: failed to fetch anonymous token: unexpected status from GET request to "
        "https://nvcr.io/proxy_auth: 401 Unauthorized\n"
        "  Warning  Failed     2m   kubelet  Error: ErrImagePull\n  Normal   BackOff    1m   kubelet  "
        'Back-off pulling image "nvcr.io/acme/x:1"\n  Warning  Failed     1m   kubelet  Error: '
        "ImagePullBackOff\n",
    ),
    Case(
        "pyxis-401",
        "auth|container",
        "401 Unauthorized",
        PYXIS_START + f"{PYXIS}    [INFO] Authenticating with user: <anonymous>\n"
        f"{PYXIS}    [ERROR] URL https://nvcr.io/proxy_auth?scope=repository:acme/x:pull returned error "
        "code: 401 Unauthorized\n" + PYXIS_END,
    ),
)

CONTAINERS = (
    Case(
        "pyxis-no-shell",
        "container|missing-file",
        "failed to execute",
        "pyxis: importing docker image ...\n"
        f"{PYXIS}container start failed with error code: 1\n{PYXIS}printing contents of log file ...\n"
        f"{PYXIS}    enroot-switchroot: failed to execute: /bin/bash: No such file or directory\n"
        + PYXIS_END,
    ),
    Case(
        "pyxis-squashfs-space",
        "disk-full|container",
        "No space left on device",
        PYXIS_START + f"{PYXIS}    [INFO] Creating squashfs filesystem...\n"
        f"{PYXIS}    Write failed because No space left on device\n"
        f"{PYXIS}    FATAL ERROR:Failed to write to output filesystem\n" + PYXIS_END,
    ),
    Case(
        "pyxis-runtime-directory",
        "permission|container",
        "Permission denied",
        f"{PYXIS}child 12004 failed with error code: 1\n{PYXIS}failed to import docker image\n"
        f"{PYXIS}printing contents of log file ...\n"
        f"{PYXIS}    mkdir: cannot create directory '/run/enroot': Permission denied\n" + PYXIS_END,
    ),
    Case(
        "pyxis-image-file-missing",
        "container|missing-file",
        "No such file or directory",
        f"{PYXIS}child 70956 failed with error code: 1\n{PYXIS}failed to create container filesystem\n"
        f"{PYXIS}printing enroot log file:\n"
        f"{PYXIS}    [ERROR] No such file or directory: /scratch/images/train.sqsh\n" + PYXIS_END,
    ),
    Case(
        "pyxis-working-directory",
        "container|missing-file",
        "couldn't chdir",
        f"{PYXIS}couldn't chdir to /workspace/proj: No such file or directory\n" + PYXIS_END,
    ),
    Case(
        "docker-without-gpus",
        "container",
        "could not select device driver",
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n'
        "exit code: 125\n",
    ),
    Case(
        "toolkit-no-driver",
        "container",
        "nvml error",
        "docker: Error response from daemon: failed to create task for container: failed to create shim "
        "task: OCI runtime create failed: runc create failed: unable to start container process: error "
        "during container init: error running hook #0: exit status 1, stdout: , stderr: Auto-detected mode "
        "as 'legacy' nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown.\n",
    ),
    Case(
        "apptainer-image",
        "container|missing-file",
        "could not open image",
        "FATAL:   could not open image /scratch/x/train.sif: failed to retrieve path for "
        "/scratch/x/train.sif: lstat /scratch/x/train.sif: no such file or directory\n",
    ),
    Case(
        "tag-not-found",
        "container",
        "not found",
        "Unable to find image 'nvcr.io/nvidia/pytorch:99.01-py3' locally\ndocker: Error response from "
        "daemon: manifest for nvcr.io/nvidia/pytorch:99.01-py3 not found: manifest unknown: manifest "
        "unknown.\n",
    ),
)

FILES = (
    Case(
        "safetensors-full",
        "disk-full",
        "No space left on device",
        STEPS
        + framed(
            "safetensors_rust.SafetensorError: Error while serializing: I/O error: No space left on device "
            "(os error 28)"
        ),
    ),
    Case(
        "home-quota",
        "quota",
        "Disk quota exceeded",
        STEPS + trace("OSError: [Errno 122] Disk quota exceeded: '/home/alice/.cache/x.lock'"),
    ),
    Case(
        "checkpoint-torn",
        "disk-full|quota",
        "unexpected pos || file write failed",
        STEPS
        + framed(
            "RuntimeError: [enforce fail at inline_container.cc:815] . PytorchStreamWriter failed writing "
            "file data/212: file write failed"
        )
        + CHAIN
        + framed(
            "RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 44224 vs 44112"
        ),
    ),
    Case(
        "quota-in-the-shell",
        "quota",
        "Disk quota exceeded",
        "cp: error writing '/home/alice/ckpt/model.safetensors': Disk quota exceeded\nexit code: 1\n",
    ),
    Case(
        "cache-of-root",
        "permission",
        "Permission denied",
        framed("PermissionError: [Errno 13] Permission denied: '/root/.cache/huggingface'"),
    ),
    Case(
        "no-weights",
        "missing-file",
        "no file named",
        framed(
            "OSError: Error no file named model.safetensors, or pytorch_model.bin, found in directory "
            "/scratch/x/checkpoint-400."
        ),
    ),
    Case(
        "no-data-file",
        "missing-file",
        "Couldn't find any data file || Unable to find",
        framed("FileNotFoundError: Unable to find '/data/alice/train.jsonl'"),
    ),
    Case(
        "wrong-path",
        "missing-file|config-error",
        "Incorrect path_or_model_id",
        framed(
            "OSError: Incorrect path_or_model_id: './ckpt/final'. Please provide either the path to a local "
            "folder or the repo_id of a model on the Hub."
        ),
    ),
    Case(
        "no-such-command",
        "missing-file",
        "command not found",
        "+ torchrun --nproc-per-node 8 train.py\n"
        "/var/spool/slurmd/job8812/slurm_script: line 31: torchrun: command not found\n",
    ),
    Case(
        "no-such-script",
        "missing-file",
        "can't open file",
        "/opt/venv/bin/python3: can't open file '/w/proj/tran.py': [Errno 2] No such file or directory\n"
        "srun: error: n17: task 0: Exited with exit code 2\n",
    ),
    Case(
        "cannot-import-name",
        "import-error",
        "cannot import name",
        framed(
            "ImportError: cannot import name 'is_torch_greater_or_equal' from 'transformers.utils' "
            "(/opt/venv/lib/python3.12/site-packages/transformers/utils/__init__.py)"
        ),
    ),
    Case(
        "lazy-import-of-transformers",
        "import-error",
        "undefined symbol || Failed to import",
        framed(
            "ImportError: /opt/x/flash_attn_2_cuda.cpython-312.so: undefined symbol: _ZNK3c106SymInt"
        )
        + DIRECT
        + framed(
            "RuntimeError: Failed to import transformers.models.llama.modeling_llama because of the "
            "following error (look up to see its traceback):\n/opt/x/flash_attn_2_cuda.cpython-312.so: "
            "undefined symbol: _ZNK3c106SymInt"
        ),
    ),
    Case(
        "no-torch",
        "import-error",
        "No module named",
        "/usr/bin/python3: No module named torch\nexit code: 1\n",
    ),
    Case(
        "stale-handle",
        "missing-file|network|python-exception",
        "Stale file handle",
        STEPS + trace("OSError: [Errno 116] Stale file handle: '/nfs/x/part-3.arrow'"),
    ),
)

SETTINGS = (
    Case(
        "invalid-float",
        "config-error",
        "invalid float value",
        "usage: train.py [-h] [--lr LR]\ntrain.py: error: argument --lr: invalid float value: '1e--5'\n"
        "srun: error: n17: task 0: Exited with exit code 2\n",
    ),
    Case(
        "omegaconf-key",
        "config-error",
        "Key 'lrr' is not in struct",
        "Error executing job with overrides: ['actor.lrr=1']\n"
        + framed(
            "omegaconf.errors.ConfigAttributeError: Key 'lrr' is not in struct\n    full_key: actor.lrr\n"
            "    object_type=dict"
        ),
    ),
    Case(
        "engine-args",
        "config-error",
        "validation errors for EngineArgs",
        framed(
            "pydantic_core._pydantic_core.ValidationError: 2 validation errors for EngineArgs\n"
            "max_model_len\n  Input should be greater than 0 [type=greater_than, input_value=-4]"
        ),
    ),
    Case(
        "axolotl-both-set",
        "config-error|python-exception",
        "please set only one of",
        framed(
            "ValueError: please set only one of gradient_accumulation_steps or batch_size",
            prefix="[rank0]: ",
        ),
    ),
    Case(
        "heads-not-divisible",
        "config-error",
        "must be divisible by",
        framed(
            "AssertionError: number of attention heads (20) must be divisible by tensor model parallel size "
            "(8)"
        ),
    ),
    Case(
        "deepspeed-batches",
        "config-error",
        "Check batch related parameters",
        framed(
            "AssertionError: Check batch related parameters. train_batch_size is not equal to "
            "micro_batch_per_gpu * gradient_acc_step * world_size 64 != 8 * 1 * 4",
            prefix="[rank1]: ",
        )
        + "[2026-03-01 18:50:22,930] [ERROR] [launch.py:325:sigkill_handler] ['python3', 'train.py'] exits "
        "with return code = 1\n",
    ),
    Case(
        "save-and-eval-strategy",
        "config-error|python-exception",
        "requires the save and eval strategy",
        framed(
            "ValueError: --load_best_model_at_end requires the save and eval strategy to match, but found\n"
            "- Evaluation strategy: IntervalStrategy.NO\n- Save strategy: SaveStrategy.STEPS"
        ),
    ),
    Case(
        "time-limit-invalid",
        "config-error|unschedulable",
        "Requested time limit is invalid",
        "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds "
        "some limit)\n",
    ),
    Case(
        "submit-limit",
        "unschedulable|config-error|quota",
        "violates accounting/QOS policy",
        "sbatch: error: QOSMaxSubmitJobPerUserLimit\nsbatch: error: Batch job submission failed: Job "
        "violates accounting/QOS policy (job submit limit, user's size and/or time limits)\n",
    ),
    Case(
        "click-missing",
        "config-error",
        "Missing argument",
        "Usage: axolotl train [OPTIONS] CONFIG\nTry 'axolotl train --help' for help.\n\nError: Missing "
        "argument 'CONFIG'.\n",
    ),
    Case(
        "typer-box",
        "config-error",
        "No such option",
        "Usage: prime-rl [OPTIONS]\nTry 'prime-rl --help' for help.\n"
        "╭─ Error ──────────────────────────────────────────────────────╮\n"
        "│ No such option: --modle Did you mean --model?                │\n"
        "╰──────────────────────────────────────────────────────────────╯\n",
    ),
    Case(
        "torchtune-config",
        "config-error|python-exception",
        "Config files are invalid || ConfigError",
        framed("torchtune.config._errors.ConfigError: Config files are invalid:\nCould not find x"),
    ),
    Case(
        "yaml-anchor",
        "config-error",
        "ScannerError",
        framed(
            'yaml.scanner.ScannerError: while scanning a simple key\n  in "c.yaml", line 7, column 1\n'
            "could not find expected ':'"
        ),
    ),
    Case(
        "invalid-device-ordinal",
        "cuda-error|config-error",
        "invalid device ordinal",
        framed("torch.AcceleratorError: CUDA error: invalid device ordinal", prefix="[rank4]: ")
        + ELASTIC,
    ),
)

TRAINING = (
    Case(
        "loss-is-nan",
        "nan-loss",
        "Loss is nan",
        STEPS + trace("ValueError: Loss is nan, stopping training"),
    ),
    Case(
        "megatron-nan",
        "nan-loss",
        "found NaN",
        " iteration 41/ 900 | consumed samples: 1312 | lm loss: 2.104512E+00 | grad norm: 0.412 |\n"
        + framed(
            "RuntimeError: Rank 12, node n03, device 4, iteration 42: Unexpected result nan (message='found "
            "NaN in local forward loss calculation')",
            prefix="[rank12]: ",
        )
        + ELASTIC,
    ),
    Case(
        "loss-prints-nan-to-the-end",
        "nan-loss",
        "'loss': nan || 'loss': 'nan'",
        "{'loss': 2.1, 'grad_norm': 0.4, 'epoch': 0.1}\n{'loss': nan, 'grad_norm': nan, 'epoch': 0.2}\n"
        "{'loss': nan, 'grad_norm': nan, 'epoch': 0.3}\n{'train_runtime': 60.1, 'train_loss': nan}\n",
    ),
    Case(
        "multinomial",
        "nan-loss",
        "probability tensor contains",
        "(WorkerDict pid=8) step:3 - actor/pg_loss:0.2\n"
        + framed(
            "RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",
            prefix="(WorkerDict pid=8) ",
        ),
    ),
    Case(
        "loss-scale",
        "nan-loss",
        "loss scale already at minimum",
        STEPS
        + framed(
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
            prefix="[rank0]: ",
        ),
    ),
)

SIGNALS = (
    Case(
        "step-cancelled",
        "sigterm",
        "CANCELLED AT",
        STEPS + "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        "slurmstepd: error: *** STEP 99.0 ON n1 CANCELLED AT 2026-03-01T10:00:12 ***\n"
        "slurmstepd: error: *** JOB 99 ON n1 CANCELLED AT 2026-03-01T10:00:12 ***\n",
    ),
    Case(
        "signal-terminated",
        "sigterm",
        "DUE to SIGNAL Terminated",
        STEPS
        + "slurmstepd: error: *** JOB 99 ON n1 CANCELLED AT 2026-03-01T10:00:12 DUE to SIGNAL Terminated "
        "***\n",
    ),
    Case(
        "faulthandler-dump",
        "segfault",
        "Segmentation fault",
        STEPS
        + "Fatal Python error: Segmentation fault\n\nThread 0x00007f2a (most recent call first):\n"
        '  File "/opt/venv/lib/python3.12/threading.py", line 324 in wait\n\n'
        "Current thread 0x00007f2b (most recent call first):\n"
        '  File "/opt/venv/lib/python3.12/site-packages/torch/_ops.py", line 501 in __call__\n\n'
        "Extension modules: numpy.core._multiarray_umath, torch._C (total: 41)\n"
        "./run.sh: line 7: 881 Segmentation fault      (core dumped) python train.py\n",
    ),
    Case(
        "double-linked-list",
        "unknown|segfault",
        "corrupted double-linked list || Aborted",
        STEPS + "corrupted double-linked list\nAborted (core dumped)\n",
    ),
    Case(
        "torchrun-exit-minus-eleven",
        "segfault",
        "exitcode: -11 || exitcode  : -11",
        STEPS
        + ELASTIC.replace("exitcode: 1", "exitcode: -11").replace(
            "exitcode  : 1", "exitcode  : -11"
        ),
    ),
    Case(
        "time-limit-then-interrupt",
        "walltime",
        "DUE TO TIME LIMIT",
        STEPS
        + "slurmstepd: error: *** JOB 17839483 ON gpu-017 CANCELLED AT 2026-03-01T10:00:12 DUE TO TIME "
        "LIMIT ***\n" + trace("KeyboardInterrupt") + "Terminated\n",
    ),
    Case(
        "step-time-limit",
        "walltime",
        "DUE TO TIME LIMIT",
        STEPS
        + "slurmstepd: error: *** STEP 17839483.0 ON gpu-017 CANCELLED AT 2026-03-01T10:00:12 DUE TO TIME "
        "LIMIT ***\nsrun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        "srun: error: gpu-017: task 0: Terminated\n",
    ),
    Case(
        "preempted-step",
        "preempted",
        "DUE TO PREEMPTION",
        STEPS
        + "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-03-01T10:00:12 DUE TO PREEMPTION ***\n"
        "W0301 10:00:13.1 188 torch/distributed/elastic/agent/server/api.py:723] Received 15 death signal, "
        "shutting down workers\n",
    ),
    Case(
        "node-failed",
        "node-failure",
        "NODE FAILURE || Node failure on",
        STEPS + "srun: error: Node failure on gpu-17\n"
        "slurmstepd: error: *** STEP 4.0 ON gpu-16 CANCELLED AT 2026-03-01T02:19:33 DUE TO NODE FAILURE, SEE "
        "SLURMCTLD LOG FOR DETAILS ***\n" + WATCHDOG.format(r=3),
    ),
    Case(
        "pod-evicted-for-disk",
        "preempted|disk-full",
        "Evicted || low on resource",
        STEPS
        + "Status:           Failed\nReason:           Evicted\nMessage:          The node was low on "
        "resource: ephemeral-storage. Threshold quantity: 10Gi, available: 8Gi.\n",
    ),
)

NETWORK = (
    Case(
        "hub-read-timeout",
        "network",
        "Read timed out",
        framed(
            "requests.exceptions.ReadTimeout: (ReadTimeoutError(\"HTTPSConnectionPool(host='huggingface.co', "
            "port=443): Read timed out. (read timeout=10)\"), '(Request ID: 8ab)')"
        ),
    ),
    Case(
        "hub-504",
        "network",
        "504 Server Error",
        framed(
            "huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: "
            "https://huggingface.co/api/models/x"
        ),
    ),
    Case(
        "endpoint-lost",
        "network|missing-file|python-exception",
        "Transport endpoint is not connected",
        STEPS + trace("OSError: [Errno 107] Transport endpoint is not connected: '/mnt/fuse/data'"),
    ),
    Case(
        "protocol-error",
        "network",
        "Connection aborted",
        framed(
            "urllib3.exceptions.ProtocolError: ('Connection aborted.', RemoteDisconnected('Remote end closed "
            "connection without response'))"
        ),
    ),
    Case(
        "s3-endpoint",
        "network",
        "Could not connect to the endpoint URL",
        framed(
            "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "
            '"https://s3.example.com/x"'
        ),
    ),
    Case(
        "pip-has-no-network",
        "network|import-error|unknown",
        "name resolution || No matching distribution || Could not find a version",
        "WARNING: Retrying (Retry(total=4, connect=None, read=None, redirect=None, status=None)) after "
        "connection broken by 'NewConnectionError(': Failed to establish a new connection: [Errno -3] "
        "Temporary failure in name resolution')': /simple/foo/\n"
        "ERROR: Could not find a version that satisfies the requirement foo (from versions: none)\n"
        "ERROR: No matching distribution found for foo\nexit code: 1\n",
    ),
    Case(
        "port-in-use",
        "network",
        "ddress already in use || EADDRINUSE",
        framed(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
            "address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in "
            "use"
        ),
    ),
)

EVALUATION = (
    Case(
        "daytona-limit",
        "sandbox|network|quota",
        "Total CPU limit exceeded || DaytonaError",
        "trials: 12/90 done\n"
        + framed(
            "daytona_sdk.common.errors.DaytonaError: Failed to create sandbox: Total CPU limit exceeded. "
            "Maximum allowed: 400."
        ),
    ),
    Case(
        "e2b-limit",
        "sandbox|network",
        "SandboxException || RateLimitException",
        framed("e2b.exceptions.SandboxException: 500: Failed to place sandbox"),
    ),
    Case(
        "docker-socket",
        "sandbox|permission|container",
        "Error while fetching server API version",
        framed(
            "docker.errors.DockerException: Error while fetching server API version: ('Connection aborted.', "
            "PermissionError(13, 'Permission denied'))"
        ),
    ),
    Case(
        "judge-gave-up",
        "judge|network",
        "Judge",
        "ERROR Judge endpoint https://judge.example/v1/chat/completions unreachable after 5 retries\n"
        + framed(
            "RuntimeError: Judge request failed for 512 of 512 samples: 503 Service Unavailable"
        ),
    ),
    Case(
        "modal-token",
        "auth|sandbox",
        "Token missing",
        framed("modal.exception.AuthError: Token missing. Could not authenticate client."),
    ),
)

HEALTHY = (
    Case(
        "preempted-sequences",
        None,
        None,
        STEPS + "WARNING 03-01 10:00:00 [scheduler.py:1754] Sequence group 41 is preempted by "
        "PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. total_cumulative_preemption"
        "_cnt=51\n" + MORE_STEPS,
    ),
    Case(
        "process-group-not-destroyed",
        None,
        None,
        STEPS
        + "[rank0]:[W301 10:00:00.1 ProcessGroupNCCL.cpp:1496] Warning: WARNING: destroy_process_group() was "
        "not called before program exit, which can leak resources.\nexit code: 0\n",
    ),
    Case(
        "wandb-retries",
        None,
        None,
        STEPS
        + "wandb: Network error (ConnectionError), entering retry loop.\nwandb: 429 encountered (Filestream "
        "rate limit exceeded, retrying in 2.1 seconds.), retrying request\n" + MORE_STEPS,
    ),
    Case(
        "tensorflow-noise",
        None,
        None,
        "E0000 00:00:1753768608.1 140 cuda_dnn.cc:8579] Unable to register cuDNN factory: Attempting to "
        "register factory for plugin cuDNN when one has already been registered\n"
        "E0000 00:00:1753768608.1 140 computation_placer.cc:177] computation placer already registered. "
        "Please check linkage and avoid linking the same target more than once.\n" + STEPS,
    ),
    Case(
        "ignored-at-exit",
        None,
        None,
        STEPS
        + "Exception ignored in: <function _ConnectionBase.__del__ at 0x7f2a1c0b6d10>\n"
        + trace("OSError: [Errno 9] Bad file descriptor").replace("<module>", "__del__"),
    ),
    Case(
        "overflow-skipped",
        None,
        None,
        STEPS
        + "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
        + MORE_STEPS,
    ),
    Case(
        "disk-almost-full",
        None,
        None,
        STEPS
        + "[2026-03-01 10:00:00,123 E 812 840] (raylet) file_system_monitor.cc:116: /tmp/ray/session_1 is over "
        "95% full, available space: 20.1 GB; capacity: 500 GB. Object creation will fail if spilling is "
        "required.\n" + MORE_STEPS,
    ),
    Case(
        "autotune",
        None,
        None,
        "E0301 10:00:00.1 88 torch/_inductor/select_algorithm.py:2100] [0/0] Runtime error during autotuning: \n"
        "E0301 10:00:00.1 88 torch/_inductor/select_algorithm.py:2100] [0/0] No valid triton configs. "
        "OutOfResources: out of resource: shared memory, Required: 262144, Hardware limit: 232448. Reducing "
        "block sizes or `num_stages` may help.. \n"
        "E0301 10:00:00.1 88 torch/_inductor/select_algorithm.py:2100] [0/0] Ignoring this choice.\n"
        + STEPS,
    ),
    Case(
        "slurm-small-talk",
        None,
        None,
        "srun: warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n"
        "slurmstepd: error: _get_joules_task: can't get info from slurmd\n"
        "slurmstepd: error: Unable to create TMPDIR [/tmp/x]: Permission denied\n"
        "slurmstepd: error: Setting TMPDIR to /tmp\n" + STEPS,
    ),
    Case(
        "nccl-plugin",
        None,
        None,
        "n17:88:88 [0] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.\n"
        "n17:88:88 [0] NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.\n"
        "n17:88:90 [0] NCCL INFO NET/IB : No device found.\n" + STEPS,
    ),
    Case(
        "batch-size-found",
        None,
        None,
        "Decreasing batch size to: 8 (CUDA out of memory. Tried to allocate 2.00 GiB)\n"
        "find_executable_batch_size: torch.OutOfMemoryError caught, retrying with batch size 4\n"
        + STEPS,
    ),
    Case(
        "one-request-of-a-server",
        None,
        None,
        POSTS
        + "ERROR:    Exception in ASGI application\n"
        + framed(
            "ValueError: Invalid image url",
            frames=((f"{LIB}/uvicorn/protocols/http.py", "run_asgi"),),
        )
        + POSTS,
    ),
    Case(
        "preprocessing-of-one-request",
        None,
        None,
        POSTS
        + framed(
            "jinja2.exceptions.TemplateError: Conversation roles must alternate user/assistant",
            prefix="ERROR 03-01 10:00:00 [serving_chat.py:200] ",
            head="Error in preprocessing prompt inputs\nERROR 03-01 10:00:00 [serving_chat.py:200] ",
        )
        + 'INFO:     10.0.0.4:40001 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request\n'
        + POSTS,
    ),
    Case(
        "server-stopped-when-done",
        None,
        None,
        POSTS
        + "Results saved to /w/results.json\nINFO:     Shutting down\nINFO:     Waiting for application "
        "shutdown.\nINFO:     Application shutdown complete.\nINFO:     Finished server process [118]\n"
        "[rank0]:[W301 10:00:00.1 ProcessGroupNCCL.cpp:1496] Warning: WARNING: process group has NOT been "
        "destroyed before we destruct ProcessGroupNCCL.\nnanobind: leaked 2 instances!\n"
        "./serve.sh: line 9: 118 Terminated              vllm serve m\n",
    ),
    Case(
        "asyncio-at-exit",
        None,
        None,
        STEPS
        + "ERROR:asyncio:Task was destroyed but it is pending!\ntask: <Task pending name='Task-9' "
        "coro=<x() running at /w/a.py:3>>\nERROR:asyncio:Unclosed client session\nclient_session: "
        "<aiohttp.client.ClientSession object at 0x7f2a>\nall 64 chunks complete\n",
    ),
    Case(
        "dependency-conflicts",
        None,
        None,
        "ERROR: pip's dependency resolver does not currently take into account all the packages that are "
        "installed. This behaviour is the source of the following dependency conflicts.\n"
        "vllm 0.9.1 requires numpy<2, but you have numpy 2.1.0 which is incompatible.\n"
        "Successfully installed numpy-2.1.0\n" + STEPS,
    ),
    Case(
        "copy-at-start",
        None,
        None,
        "cp: cannot stat '/scratch/x/cache/*': No such file or directory\n"
        "mkdir: cannot create directory '/local': Permission denied\n" + STEPS,
    ),
    Case(
        "generated-tracebacks",
        None,
        None,
        STEPS + "┃ Completion                          ┃ Reward ┃\n"
        "│ Traceback (most recent call last):  │   0.00 │\n"
        '│   File "/tmp/a.py", line 3, in <mod │        │\n'
        "│ ZeroDivisionError: division by zero │        │\n"
        "└─────────────────────────────────────┴────────┘\n" + MORE_STEPS,
    ),
    Case(
        "sha-of-a-local-model",
        None,
        None,
        "2026-03-01:10:00:00 WARNING [models.huggingface:1521] Failed to get model SHA for /w/m at revision "
        "main. Error: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/w/m'.\n"
        "Running loglikelihood requests: 100%|##########| 400/400 [10:00<00:00,  1.50s/it]\n"
        "|Tasks|Version|Filter|n-shot|Metric|   |Value |   |Stderr|\n|mmlu |      2|none  |     5|acc   |   "
        "|0.6214|   |0.0039|\n",
    ),
    Case(
        "readiness",
        None,
        None,
        "  Warning  Unhealthy  3m (x12 over 8m)  kubelet  Readiness probe failed: Get "
        '"http://10.0.0.4:8000/health": dial tcp 10.0.0.4:8000: connect: connection refused\n'
        + POSTS,
    ),
    Case(
        "reward-of-a-sandbox",
        None,
        None,
        "(RewardWorker pid=71) sandbox run of sample 88: exit code 1, stderr: MemoryError\n"
        "(RewardWorker pid=71) sandbox run of sample 89: Segmentation fault (core dumped), reward 0\n"
        + STEPS,
    ),
)

CASES = (
    *(*GPU, *COLLECTIVES, *MEMORY, *RAY_CASES, *ENGINES, *ACCESS, *CONTAINERS, *FILES, *SETTINGS),
    *(*TRAINING, *SIGNALS, *NETWORK, *EVALUATION, *HEALTHY),
)
