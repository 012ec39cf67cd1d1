"""Inference engines: the server's own error is above, its clients show the symptom."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

_ADVICE = (
    "Read the server's log above the first client error; the engine does not come back by itself."
)

FAULTS = (
    Fault(
        id="vllm-engine-died",
        cause="engine-dead",
        role=Role.SYMPTOM,
        needles=(
            "EngineCore encountered",
            "EngineDeadError",
            "EngineCore failed to start",
            "Engine core initialization failed",
            "died unexpectedly, shutting down executor",
            "Background loop has errored",
            "MQEngine",
            "Engine process failed to start",
            "Engine core proc",
            "AsyncEngineDeadError",
        ),
        pattern=re.compile(
            r"EngineCore encountered an? (?:fatal error|issue)|\b(?:Async|MQ)?EngineDeadError\b|EngineCore failed to start|"
            r"Engine core initialization failed|Worker proc \S+ died unexpectedly|"
            r"Background loop has errored already|MQLLMEngine terminated|Engine process failed to start|Engine core proc \S+ died"
        ),
        weight=20,
        any_level=True,
        advice=_ADVICE,
        source="vLLM, v1 engine",
        yes=(
            "EngineCore encountered a fatal error.",
            "litellm.InternalServerError: InternalServerError: OpenAIException - EngineCore encountered an issue. See stack trace (above) for the root cause.",
        ),
        no=("INFO EngineCore exiting.", "EngineCore_DP0 waiting for init message"),
    ),
    Fault(
        id="engine-timed-out",
        cause="engine-dead",
        role=Role.SYMPTOM,
        needles=("RPC call to",),
        pattern=re.compile(r"RPC call to \w+ timed out"),
        weight=19,
        any_level=True,
        advice="A worker of the engine hangs: look at the collective it waits in, and at its GPU.",
        source="vLLM, multiprocess executor",
        yes=("TimeoutError: RPC call to sample_tokens timed out.",),
        no=("RPC call to health took 0.1 s",),
    ),
    Fault(
        id="sglang-engine-died",
        cause="engine-dead",
        role=Role.SYMPTOM,
        needles=(
            "hit an exception",
            "sigquit from a child",
            "SIGQUIT from a child",
            "scheduler is dead",
            "Scheduler died",
            "Detokenizer died",
            "Watchdog timeout",
            "Initialization failed. Please see the error",
        ),
        pattern=re.compile(
            r"(?:Scheduler|TpModelWorkerClient|DetokenizerManager|TokenizerManager) hit an exception|[Rr]eceived (?:sigquit|SIGQUIT) from a child process|"
            r"[Rr]ank \d+ scheduler is dead|(?:Scheduler|Detokenizer)\w* died|(?:Scheduler|Self\.) ?[Ww]atchdog timeout|^Watchdog timeout \(|Initialization failed\. Please see the error messages above"
        ),
        weight=20,
        any_level=True,
        advice=_ADVICE,
        source="SGLang",
        yes=(
            "Received sigquit from a child process. It usually means the child failed.",
            "Scheduler hit an exception: Traceback (most recent call last):",
        ),
        no=("scheduler policy: fcfs",),
    ),
    Fault(
        id="server-never-up",
        cause="engine-dead",
        role=Role.SYMPTOM,
        needles=(
            "died before becoming healthy",
            "server process died",
            "Health check timeout after",
            "server never came up",
            "Server process",
            "server process",
            "did not become healthy",
            "endpoint down",
            "not become ready",
            "Server failed to start",
            "server failed to start",
        ),
        pattern=re.compile(
            r"server process \S* ?(?:died|exited|terminated)|server process died|Health check timeout after \d+|server never came up|"
            r"Server process \S+ (?:died|exited with)|did not become (?:healthy|ready)|endpoint down for \d+|[Ss]erver failed to start"
        ),
        weight=45,
        scope=Scope.ANY,
        advice=_ADVICE,
        source="nel deployments, evaluation clients",
        yes=(
            "ERROR server process 118 died before becoming healthy",
            "client: giving up, server never came up",
        ),
        no=("INFO: Finished server process [118]", "INFO: Started server process [118]"),
    ),
    Fault(
        id="engine-wrapper",
        cause="engine-dead",
        role=Role.CONSEQUENCE,
        needles=(
            "AsyncLLM output_handler failed",
            "Parent process exited",
            "Dumping input data for",
            "failed_samples_policy",
            "Shutting down FastAPI",
        ),
        any_level=True,
        advice=_ADVICE,
        source="vLLM, nemo-evaluator",
        yes=(
            "AsyncLLM output_handler failed.",
            "RuntimeError: Evaluation failed! failed_samples_policy=fail, 230 samples without a response",
        ),
        no=("AsyncLLM started",),
    ),
)
