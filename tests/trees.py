"""The stored folders and ways to make others."""

import json
from pathlib import Path
from typing import Any

FOLDERS = Path(__file__).parent / "transcripts" / "folders"
VERSIONS = ("0.1.17", "0.1.45", "0.26.0")
JOB = "eval-dev_set_v2_my-model-8b_20260714_090000"


def harbor(version: str) -> Path:
    """A stored job of trials: nine with a result, one running."""
    return FOLDERS / "harbor" / version / "jobs" / JOB


def result(name: str = "task__aaaaaaa", **changes: Any) -> dict[str, Any]:
    """A trial's result, with only what a test cares about spelled out."""
    return {
        "trial_name": name,
        "task_name": name.split("__", 1)[0],
        "agent_result": {"n_output_tokens": 310, "metadata": {"n_episodes": 9}},
        "verifier_result": {"rewards": {"reward": 1.0}},
        "exception_info": None,
        "started_at": "2026-07-14T09:00:20",
        "finished_at": "2026-07-14T09:05:20",
        **changes,
    }


def put(folder: Path, document: Any, name: str = "result.json") -> Path:
    """A file of JSON in a folder that is made for it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = document if isinstance(document, str) else json.dumps(document, indent=4)
    (folder / name).write_text(text)
    return folder / name
