"""Judges and sandboxes of evaluations and data generation."""

import re

from jobmond.analysis.faults.fault import Fault, Role

FAULTS = (
    Fault(
        id="judge",
        cause="judge",
        role=Role.SYMPTOM,
        needles=("udge", "JUDGE", "rader"),
        pattern=re.compile(
            r"EVAL_JUDGE_FAILED|^(?:[\w.]+\.)?(?:Judge|Grader)\w*(?:Error|Exception)\b|\b[Jj]udge (?:API|model|endpoint|call|request|server)\b.*\b(?:failed|error|unreachable|down|malformed|refused|exhausted|5\d\d)\b|"
            r"(?:[Mm]alformed|[Uu]nparsable|[Ii]nvalid) (?:JSON )?(?:judge|grader) (?:output|response|reply)|"
            r"^(?:[\w.]+\.)?\w*Error: .*\b(?:judge|grader)\b.*\b(?:malformed|unparsable|failed|no verdict|could not be parsed|invalid JSON|not valid JSON|returned)\b"
        ),
        weight=18,
        advice="The judge does not answer usefully: check its endpoint, key, model name and rate limit, then score again.",
        source="Arena-Hard, SimpleQA graders, NeMo evaluator",
        yes=(
            "JudgeError: judge returned malformed JSON 20 times in a row",
            "RuntimeError: judge endpoint https://judge.example/v1 failed for 412 of 500 questions",
        ),
        no=("judging with judge-large-2 at https://judge.example/v1 (parallel 32)",),
    ),
    Fault(
        id="sandbox",
        cause="sandbox",
        role=Role.SYMPTOM,
        needles=(
            "andbox",
            "DaytonaError",
            "Daytona",
            "EnvironmentStartTimeoutError",
            "ocker daemon",
            "EnvironmentBuild",
            "ModalError",
            "HealthcheckError",
        ),
        pattern=re.compile(
            r"^(?:[\w.]+\.)?(?:Daytona\w*Error|Sandbox\w*(?:Error|Exception)|EnvironmentStartTimeoutError|EnvironmentBuild\w*Error|HealthcheckError)\b|"
            r"Cannot connect to the Docker daemon|^(?:[\w.]+\.)?\w*Error: .*(?:[Ff]ailed to (?:create|start) (?:the )?(?:sandbox|environment)|sandbox(?:es)? (?:quota|limit|could not|failed|not started))|"
            r"(?:all|every|no) sandbox(?:es)? (?:failed|could)|giving up.*sandbox"
        ),
        weight=19,
        advice="The sandbox provider refuses or is down: check its quota and status before trials are started again.",
        source="Harbor, Daytona, E2B, docker",
        yes=(
            "daytona_sdk.common.errors.DaytonaError: Failed to create sandbox: 502 Bad Gateway",
            "docker.errors.DockerException: Cannot connect to the Docker daemon at unix:///var/run/docker.sock.",
        ),
        no=("sandbox ready in 3.1 s",),
    ),
)
