"""More logs as tools print them; written after the catalogue could read all the others."""

from tests.unit.analysis.faults.shapes import ACTOR_DIED, HYDRA, RAY, RAYLET_DIED, WATCHDOG, framed
from tests.unit.analysis.faults.variations import ELASTIC, MORE_STEPS, STEPS, Case, trace

KILLING = "".join(
    f"[2026-03-01 13:11:27,87{n}] [INFO] [launch.py:428:sigkill_handler] Killing subprocess 1326{n}\n"
    for n in range(4)
)


def returned(code: int) -> str:
    return (
        KILLING
        + "[2026-03-01 13:11:28,885] [ERROR] [launch.py:434:sigkill_handler] ['/usr/bin/python3', '-u', "
        f"'main.py', '--local_rank=3', '--zero_stage', '2'] exits with return code = {code}\n"
    )


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 3 has a total capacity of 94.50 GiB of which 1.02 GiB is free."
KUBE = "2026-03-01T10:00:01.123456789Z stderr F "
BROKEN = (
    Case("deepspeed-9", "sigkill|host-oom", "return code = -9", STEPS + returned(-9)),
    Case("deepspeed-7", "segfault|host-oom", "return code = -7", STEPS + returned(-7)),
    Case("deepspeed-11", "segfault", "return code = -11", STEPS + returned(-11)),
    Case(
        "deepspeed-traceback-first",
        "python-exception",
        "KeyError: 'labels'",
        STEPS + trace("KeyError: 'labels'", "[rank2]: ") + returned(1),
    ),
    Case(
        "nccl-service-threads",
        "nccl-timeout",
        "Watchdog caught",
        STEPS
        + WATCHDOG.format(r=2)
        + "9aee1c01f3e7:6727:7168 [1] NCCL INFO [Service thread] Connection closed by localRank 2\n"
        "9aee1c01f3e7:6728:7169 [2] NCCL INFO [Service thread] Connection closed by localRank 2\n"
        + WATCHDOG.format(r=0)
        + ELASTIC,
    ),
    Case(
        "prime-rl-trainer",
        "python-exception",
        "AttributeError: 'NoneType'",
        "[default0]:12:13:46    INFO Starting training step 0\n"
        + trace("AttributeError: 'NoneType' object has no attribute 'mean'", "[default2]:[rank2]: ")
        + ELASTIC.replace("train.py FAILED", "prime_rl.trainer.rl.train FAILED")
        + "10:46:04   ERROR Error: Trainer failed with exit code 1\n"
        "10:46:04   ERROR Terminating all processes...\n",
    ),
    Case(
        "loguru-draws-values",
        "sigkill|host-oom|python-exception",
        "abruptly died during map operation",
        "2026-03-01 10:00:00 | ERROR    | __main__:<module>:12 - An error has been caught in function "
        "'<module>', process 'MainProcess' (88), thread 'MainThread' (1400):\n"
        "Traceback (most recent call last):\n\n"
        '> File "/w/proj/run.py", line 12, in <module>\n    main()\n    └ <function main at 0x7fe90f9ad900>\n\n'
        '  File "/opt/venv/lib/python3.12/site-packages/datasets/arrow_dataset.py", line 593, in wrapper\n'
        "    out = func(self, *args, **kwargs)\n          │    │      │       └ {'num_proc': 40}\n"
        "          │    │      └ ()\n          └ <function Dataset.map at 0x7feabc54d1b0>\n\n"
        "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the error, "
        "disable multiprocessing.\n",
    ),
    Case(
        "rich-box",
        "cuda-oom",
        "OutOfMemoryError: CUDA out of memory",
        STEPS + "╭───────────────────── Traceback (most recent call last) ──────────────────────╮\n"
        "│ /w/proj/train.py:51 in main                                                  │\n"
        "│                                                                              │\n"
        "│    50 │   for batch in loader:                                               │\n"
        "│ ❱  51 │   │   loss = model(batch)                                            │\n"
        "╰──────────────────────────────────────────────────────────────────────────────╯\n"
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of "
        "79.11 GiB of which 0.91 GiB is free.\n",
    ),
    Case(
        "ray-task-error-of-a-policy-worker",
        "cuda-error",
        "CUDA error: an illegal memory access",
        framed(
            "ray.exceptions.RayTaskError(AcceleratorError): ray::skyrl_entrypoint() (pid=1307236, "
            "ip=10.1.1.40)\n"
            '  File "/w/src/train.py", line 63, in skyrl_entrypoint\n    exp.run()\n'
            "ray.exceptions.RayTaskError(AcceleratorError): ray::FSDPPolicyWorkerBase.ppo_train() "
            "(pid=1308879)\n"
            '  File "/w/skyrl_train/workers/worker.py", line 668, in ppo_train\n'
            "    status = self.training_step(experience)\n"
            "torch.AcceleratorError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors "
            "might be asynchronously reported at some other API call, so the stacktrace below might be "
            "incorrect.",
            frames=RAY,
        ),
    ),
    Case(
        "billing-quota",
        "quota|network|auth",
        "insufficient_quota",
        framed(
            "openai.RateLimitError: Error code: 429 - {'error': {'message': 'You exceeded your current quota, "
            "please check your plan and billing details.', 'type': 'insufficient_quota', 'code': "
            "'insufficient_quota'}}"
        ),
    ),
    Case(
        "bad-json-in-a-data-set",
        "python-exception",
        "JSON parse error || DatasetGenerationError",
        framed(
            "pyarrow.lib.ArrowInvalid: JSON parse error: Missing a closing quotation mark in string. in "
            "row 25"
        )
        + "\nThe above exception was the direct cause of the following exception:\n\n"
        + framed(
            "datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset"
        ),
    ),
    Case(
        "nemo-checkpoint-missing",
        "missing-file",
        "No such file or directory: '/checkpoints/x.nemo'",
        "[NeMo I 2026-03-01 10:00:00 nemo_logging:393] Restoring from /checkpoints/x.nemo\n"
        "Error executing job with overrides: ['trainer.devices=8']\n"
        + trace("FileNotFoundError: [Errno 2] No such file or directory: '/checkpoints/x.nemo'")
        + HYDRA
        + "srun: error: n17: tasks 0-7: Exited with exit code 1\n",
    ),
    Case(
        "kubernetes-stamps",
        "cuda-oom",
        "torch.OutOfMemoryError",
        "".join(f"{KUBE}{line}\n" for line in (STEPS[:400] + "\n" + trace(OOM)).split("\n")),
    ),
    Case(
        "uniform-dtype",
        "python-exception",
        "Must flatten tensors with uniform dtype",
        trace(
            "ValueError: Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32",
            "[rank1]: ",
        )
        + ELASTIC,
    ),
    Case(
        "old-gpu",
        "python-exception|cuda-error|config-error",
        "only supports Ampere",
        trace("RuntimeError: FlashAttention only supports Ampere GPUs or newer."),
    ),
    Case(
        "no-libcuda-to-link",
        "python-exception|import-error|missing-file|unknown",
        "cannot find -lcuda || CalledProcessError",
        "/usr/bin/ld: cannot find -lcuda: No such file or directory\ncollect2: error: ld returned 1 exit "
        "status\n"
        + framed(
            "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/x/main.c', '-lcuda']' returned "
            "non-zero exit status 1."
        ),
    ),
    Case(
        "extension-does-not-build",
        "python-exception|cuda-error|import-error|config-error",
        "Error building extension || nvcc fatal",
        "nvcc fatal   : Unsupported gpu architecture 'compute_100'\nninja: build stopped: subcommand "
        "failed.\n" + framed("RuntimeError: Error building extension 'fused_adam'"),
    ),
    Case(
        "ray-has-no-gpus",
        "config-error|unschedulable",
        "less than total desired GPUs",
        "Error executing job with overrides: ['trainer.n_gpus_per_node=8']\n"
        + framed(
            "ray.exceptions.RayTaskError(ValueError): ray::TaskRunner.run() (pid=77, ip=10.0.0.3)\n"
            '  File "/w/verl/trainer/main_ppo.py", line 188, in run\n    pool.check()\n'
            "ValueError: Total available GPUs 0 is less than total desired GPUs 8",
            frames=RAY,
        ),
    ),
    Case(
        "sglang-fraction",
        "cuda-oom|config-error|engine-dead",
        "--mem-fraction-static",
        framed(
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            head="[2026-03-01 10:00:00 TP0] Scheduler hit an exception: ",
        )
        + "[2026-03-01 10:00:02] Received sigquit from a child process. It usually means the child failed.\n",
    ),
    Case(
        "trl-server-not-there",
        "network|engine-dead",
        "server can't be reached",
        framed(
            "ConnectionError: The vLLM server can't be reached at http://0.0.0.0:8000 after 240.0 seconds. "
            "Make sure the server is running by running `trl vllm-serve`."
        ),
    ),
    Case(
        "hub-says-slow-down",
        "network",
        "429",
        framed(
            "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: "
            "https://huggingface.co/api/models/x"
        ),
    ),
    Case(
        "gres",
        "config-error|unschedulable",
        "Invalid generic resource",
        "srun: error: Unable to create step for job 88: Invalid generic resource (gres) specification\n",
    ),
    Case(
        "script-not-executable",
        "permission",
        "Permission denied",
        "slurmstepd: error: execve(): /w/train.sh: Permission denied\n"
        "srun: error: n17: task 0: Exited with exit code 13\n",
    ),
    Case(
        "script-not-there",
        "missing-file",
        "No such file or directory",
        "slurmstepd: error: execve(): /w/train.sh: No such file or directory\n"
        "srun: error: n17: task 0: Exited with exit code 2\n",
    ),
    Case(
        "working-directory-gone",
        "missing-file",
        "can't open file || couldn't chdir",
        "slurmstepd: error: couldn't chdir to `/scratch/x': No such file or directory: going to /tmp "
        "instead\npython: can't open file '/tmp/train.py': [Errno 2] No such file or directory\n"
        "srun: error: n17: task 0: Exited with exit code 2\n",
    ),
    Case(
        "bus-error-in-the-shell",
        "segfault|host-oom",
        "Bus error",
        STEPS + "bash: line 1:  5512 Bus error               (core dumped) python train.py\n",
    ),
    Case(
        "none-dealloc",
        "unknown|segfault",
        "Fatal Python error",
        STEPS
        + "Fatal Python error: none_dealloc: deallocating None\nPython runtime state: initialized\n\nCurrent "
        'thread 0x00007f2b (most recent call first):\n  File "/w/a.py", line 3 in f\nAborted (core dumped)\n',
    ),
    Case(
        "malloc-assertion",
        "unknown|segfault|host-oom",
        "sysmalloc || Aborted",
        STEPS
        + "python: malloc.c:2379: sysmalloc: Assertion `(old_top == initial_top (av) && old_size == 0)' "
        "failed.\nAborted (core dumped)\n",
    ),
    Case(
        "wandb-init-timeout",
        "network|auth",
        "timed out",
        "wandb: ERROR Run initialization has timed out after 90.0 sec. Please try increasing the timeout with "
        "the `init_timeout` setting.\n"
        + framed(
            "wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec. Please try "
            "increasing the timeout with the `init_timeout` setting."
        ),
    ),
    Case(
        "wandb-no-key",
        "auth",
        "api_key not configured",
        framed(
            "wandb.errors.errors.UsageError: api_key not configured (no-tty). call "
            "wandb.login(key=[your_api_key])"
        ),
    ),
    Case(
        "expired-token",
        "auth",
        "ExpiredToken",
        STEPS
        + framed(
            "botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the PutObject "
            "operation: The provided token has expired."
        ),
    ),
    Case(
        "rsync-full",
        "disk-full",
        "No space left on device",
        STEPS
        + 'rsync: [receiver] write failed on "/scratch/x/ckpt": No space left on device (28)\n'
        "rsync error: error in file IO (code 11) at receiver.c(380) [receiver=3.2.7]\nexit code: 11\n",
    ),
    Case(
        "read-only",
        "permission|node-failure",
        "Read-only file system",
        STEPS + trace("OSError: [Errno 30] Read-only file system: '/scratch/x/checkpoint-40'"),
    ),
    Case(
        "input-output",
        "python-exception|node-failure|missing-file|disk-full",
        "Input/output error",
        STEPS + trace("OSError: [Errno 5] Input/output error"),
    ),
    Case(
        "open-files",
        "python-exception|quota|config-error",
        "Too many open files",
        STEPS + trace("OSError: [Errno 24] Too many open files: '/w/data/x.arrow'"),
    ),
    Case(
        "fell-off-the-bus",
        "cuda-error|node-failure",
        "NVRM: Xid || fallen off the bus",
        STEPS
        + "[88123.4] NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the "
        "bus.\n" + WATCHDOG.format(r=1) + WATCHDOG.format(r=0) + ELASTIC,
    ),
    Case(
        "insufficient-gpus",
        "unschedulable",
        "nodes are available",
        "Events:\n  Type     Reason            Age   From               Message\n  Warning  FailedScheduling  "
        "3m    default-scheduler  0/12 nodes are available: 12 Insufficient nvidia.com/gpu. preemption: 0/12 "
        "nodes are available: 12 No preemption victims found for incoming pod.\n",
    ),
    Case(
        "preempted-pod",
        "preempted",
        "PreemptionByScheduler || Preempted",
        STEPS
        + "  Type:               DisruptionTarget\n  Reason:             PreemptionByScheduler\n"
        "  Message:            default-scheduler: preempting to accommodate a higher priority pod\n",
    ),
    Case(
        "environments-never-start",
        "sandbox",
        "EnvironmentStartTimeoutError",
        "trials: 0/90 done\n"
        + framed(
            "harbor.environments.base.EnvironmentStartTimeoutError: Environment start timed out after 600.0 "
            "seconds"
        ),
    ),
    Case(
        "second-worker-of-ray-died-of-memory",
        "host-oom",
        "memory pressure || low on memory",
        STEPS
        + RAYLET_DIED
        + framed(
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory "
            "on the node (IP: 10.0.0.3, ID: 3d1f) where the task (actor ID: aa, name=W.__init__) was running "
            "was 1910.12GB / 2000.00GB (0.955), which exceeds the memory usage threshold of 0.95.",
            frames=RAY,
        ),
    ),
    Case(
        "exception-group",
        "python-exception",
        "ValueError: reward is None",
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/w/proj/train.py", line 88, in <module>\n  |     asyncio.run(main())\n'
        '  |   File "/usr/lib/python3.12/asyncio/taskgroups.py", line 145, in __aexit__\n'
        "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "/w/proj/rollout.py", line 51, in step\n    |     raise ValueError("reward is None")\n'
        "    | ValueError: reward is None\n    +------------------------------------\n",
    ),
    Case(
        "actor-died-then-exit-code",
        "ray-died|sigkill|host-oom",
        "ActorDiedError || A worker died",
        STEPS + framed(ACTOR_DIED, frames=RAY) + "job exited with code 1\n",
    ),
    Case(
        "lightning-misconfigured",
        "config-error|python-exception",
        "MisconfigurationException",
        framed(
            "lightning.fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, 1, 2, 3]\n"
            " But your machine only has: [0, 1]"
        ),
    ),
    Case(
        "cuda-setup",
        "import-error|cuda-error|python-exception",
        "CUDA Setup failed",
        framed(
            "RuntimeError: \n        CUDA Setup failed despite GPU being available. Please run the following "
            "command to get more information:"
        ).replace("RuntimeError: \n        CUDA", "RuntimeError: CUDA"),
    ),
    Case(
        "judge-key",
        "auth|judge",
        "401",
        framed(
            "openai.AuthenticationError: Error code: 401 - {'error': {'message': 'Incorrect API key provided: "
            "sk-ju****9f2A.', 'code': 'invalid_api_key'}}"
        ),
    ),
)

FIRST_LINE = "=== run 7: python train.py --config a.yaml ===\n"
WELL = (
    Case(
        "workers-register-late",
        None,
        None,
        "(raylet) [2026-03-01 23:28:23,623 E 2711113 2711113] (raylet) worker_pool.cc:586: Some workers of the "
        "worker process(2767690) have not registered within the timeout. The process is still alive, probably "
        "it's hanging during start. [repeated 4x across cluster]\n" + STEPS,
    ),
    Case(
        "second-life-is-well",
        None,
        None,
        FIRST_LINE + STEPS + trace(OOM, "[rank2]: ") + ELASTIC + FIRST_LINE + STEPS,
    ),
    Case(
        "inference-server-comes-up",
        None,
        None,
        "16:41:43 WARNING Inference server was not reached after 10 seconds (Error: All connection attempts "
        "failed) on http://localhost:8000\n16:42:23 WARNING Inference server was not reached after 50 seconds "
        "(Error: All connection attempts failed) on http://localhost:8000\n16:42:27 SUCCESS Inference pool "
        "ready\n" + STEPS,
    ),
    Case(
        "one-bad-step",
        None,
        None,
        "{'loss': 2.1, 'grad_norm': 0.4}\n{'loss': nan, 'grad_norm': nan}\n"
        + "{'loss': 2.0, 'grad_norm': 0.4}\n" * 20,
    ),
    Case(
        "validation-is-nan",
        None,
        None,
        STEPS + "{'eval_loss': nan, 'eval_runtime': 3.1}\n" + MORE_STEPS,
    ),
    Case(
        "push-to-hub-failed",
        None,
        None,
        STEPS
        + "WARNING:hub:Failed to push checkpoint-40, training goes on\n"
        + framed(
            "huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: https://x"
        )
        + MORE_STEPS,
    ),
    Case(
        "configuration-printed",
        None,
        None,
        "on_error: raise            # ValueError, RuntimeError or skip\nretry:\n  - CUDA out of memory\n  - "
        "DUE TO TIME LIMIT\n  - oom_kill\n+        raise RuntimeError('bad')\n-    except KeyError: pass\n"
        + STEPS,
    ),
    Case(
        "stale-processes",
        None,
        None,
        "killed 3 stale vllm processes\nNo matching processes belonging to you "
        "were found\n" + STEPS,
    ),
    Case(
        "step-is-busy",
        None,
        None,
        STEPS
        + "srun: Job 88 step creation temporarily disabled, retrying (Requested nodes are busy)\nsrun: Step "
        "created for StepId=88.1\n" + MORE_STEPS,
    ),
    Case(
        "deepspeed-ops",
        None,
        None,
        "[WARNING]  async_io requires the dev libaio .so object and headers but these were not found.\n"
        "[WARNING]  async_io: please install the libaio-dev package with apt\n"
        "[WARNING]  sparse_attn requires a torch version >= 1.5 and < 2.0 but detected 2.7\n"
        + STEPS,
    ),
    Case(
        "no-gpu-on-the-driver-node",
        None,
        None,
        "E0301 10:00:00.1 88 cuda_executor.cc:1228] INTERNAL: CUDA Runtime error: Failed call to "
        "cudaGetRuntimeVersion: Error loading CUDA libraries. GPU will not be used.\n"
        "2026-03-01 10:00:00.1: E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:266] failed call "
        "to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n" + STEPS,
    ),
    Case(
        "flash-attention-version",
        None,
        None,
        "ERROR 03-01 10:00:00 [fa_utils.py:57] Cannot use FA version 3 is not supported due to FA3 is only "
        "supported on devices with compute capability >= 8\n" + STEPS,
    ),
    Case(
        "guessing-devices",
        None,
        None,
        "[rank0]:[W301 10:00:00.1 ProcessGroupNCCL.cpp:4843] [PG ID 0 PG GUID 0 Rank 0]  using GPU 0 as device "
        "used by this process is currently unknown. This can potentially cause a hang if this rank to GPU "
        "mapping is incorrect.\n" + STEPS,
    ),
    Case(
        "requeued-after-preemption",
        None,
        None,
        FIRST_LINE
        + STEPS
        + "slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2026-03-01T10:00:12 DUE TO PREEMPTION ***\n"
        + FIRST_LINE
        + STEPS,
    ),
    Case(
        "tests-of-a-trial",
        None,
        None,
        STEPS
        + "(rollout pid=71) FAILED tests/test_outputs.py::test_hello - AssertionError: assert 'a' == 'b'\n"
        "(rollout pid=71) =========== 1 failed, 3 passed in 0.21s ===========\n" + MORE_STEPS,
    ),
    Case(
        "requests-time-out-and-are-tried-again",
        None,
        None,
        STEPS + "(rollout pid=71) ERROR httpx.ReadTimeout on attempt 2 of 5, retrying\n"
        "(rollout pid=71) openai._base_client - INFO - Retrying request to /chat/completions in 0.91 seconds\n"
        + MORE_STEPS,
    ),
)

CASES = (*BROKEN, *WELL)
