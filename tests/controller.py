"""An iris controller in memory, and the recorded answers of a real one."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from jobmond.errors import TransportError
from jobmond.ports import HttpAnswer

RECORDED = Path(__file__).parent / "transcripts/iris/answers.jsonl"
JSON = {"content-type": "application/json"}
Object = dict[str, Any]
_LIVE = ("pending", "building", "assigned", "running")


def ok(answer: object) -> HttpAnswer:
    return HttpAnswer(200, JSON, json.dumps(answer).encode())


def error(status: int, code: str, message: str) -> HttpAnswer:
    return HttpAnswer(status, JSON, json.dumps({"code": code, "message": message}).encode())


def recorded(case: str, method: str) -> list[Object]:
    """What a real controller answered, in order: `question`, `status` and `answer`."""
    lines = map(json.loads, RECORDED.read_text().splitlines())
    return [line for line in lines if (line["case"], line["method"]) == (case, method)]


def ms(at: datetime) -> Object:
    return {"epochMs": str(int(at.timestamp() * 1000))}


@dataclass
class Controller:
    """Answers like a real one from `jobs` (records by id), `tasks` and `lines` of logs.

    `broken` decides first: an answer, an error, or a function of method and question that may
    give either. `asked` are all methods and questions, `headers` what came with the last one.
    """

    jobs: dict[str, Object] = field(default_factory=dict)
    tasks: dict[str, list[Object]] = field(default_factory=dict)
    lines: list[Object] = field(default_factory=list)
    broken: Any = None
    asked: list[tuple[str, Object]] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    logins: int = 0

    # -- what a test arranges ------------------------------------------------------------------

    def submit(self, job: str, at: datetime, state: str = "running", **more: Any) -> Object:
        """A new record under `job` (`alice/train`), in place of any other."""
        started = {"startedAt": ms(at)} if state not in ("pending", "building") else {}
        self.jobs[f"/{job}"] = {
            "jobId": f"/{job}",
            "name": f"/{job}",
            "state": f"JOB_STATE_{state.upper()}",
            "exitCode": 0,
            "error": "",
            "submittedAt": ms(at),
            **started,
            "failureCount": 0,
            "preemptionCount": 0,
            "taskStateCounts": {state: 1},
            "taskCount": 1,
            "pendingReason": "",
            "hasChildren": False,
            "parentJobId": "",
            "peerStatus": "PEER_STATUS_NONE",
            **more,
        }
        self.tasks[f"/{job}"] = [self.task(job, state)]
        return self.jobs[f"/{job}"]

    def task(self, job: str, state: str, index: int = 0, **more: Any) -> Object:
        name = f"TASK_STATE_{state.upper()}"
        return {"taskId": f"/{job}/{index}", "state": name, "exitCode": 0, "attempts": [], **more}

    def end(self, job: str, state: str, at: datetime, *, exit_code: int = 0, why: str = "") -> None:
        self.jobs[f"/{job}"] |= {
            "state": f"JOB_STATE_{state.upper()}",
            "finishedAt": ms(at),
            "error": why,
            "taskStateCounts": {state: 1},
        }
        ended = self.task(job, state, exitCode=exit_code, error=why, finishedAt=ms(at))
        self.tasks[f"/{job}"] = [ended]

    def say(self, job: str, at: datetime, *texts: str, task: str = "0:0") -> None:
        for text in texts:
            self.lines.append(
                {
                    "timestamp": ms(at),
                    "source": "stdout",
                    "data": text,
                    "key": f"/{job}/{task}",
                    "seq": str(len(self.lines) + 1),
                }
            )

    def count(self, method: str) -> int:
        return sum(1 for name, _ in self.asked if name == method)

    # -- what it answers -----------------------------------------------------------------------

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes = b"",
        timeout_s: float,
        max_bytes: int,
    ) -> HttpAnswer:
        self.headers = headers
        assert (method, headers["content-type"]) == ("POST", "application/json")
        answer = self.answer(url, body)
        if isinstance(answer, TransportError):
            raise answer
        return HttpAnswer(answer.status, answer.headers, answer.body[:max_bytes])

    async def close(self) -> None: ...

    def answer(self, url: str, body: bytes) -> HttpAnswer | TransportError:
        service, _, method = url.rpartition("/")
        question = json.loads(body)
        self.asked.append((method, question))
        broken = self.broken
        if isinstance(broken, Callable):  # type: ignore[arg-type] # a protocol with __call__
            broken = broken(method, question)
        if broken is not None:
            return broken
        assert service.endswith(
            "/proxy/system.log-server/finelog.logging.LogService"
            if method == "FetchLogs"
            else "/iris.cluster.ControllerService"
        )
        answer: HttpAnswer = getattr(self, f"_{method}")(question)
        return answer

    def _GetJobState(self, question: Object) -> HttpAnswer:  # the controller's name
        known = [one for one in question["jobIds"] if one in self.jobs]
        return ok({"states": {one: self.jobs[one]["state"] for one in known}} if known else {})

    def _GetJobStatus(self, question: Object) -> HttpAnswer:
        job = question["jobId"]
        if job not in self.jobs:
            return error(404, "not_found", f"Job {job} not found")
        return ok({"job": self.jobs[job], "request": {"environment": {"envVars": {"K": "hush"}}}})

    def _ListTasks(self, question: Object) -> HttpAnswer:
        found = self.tasks.get(question["jobId"])
        return ok({"tasks": found} if found else {})

    def _ListJobs(self, question: Object) -> HttpAnswer:
        query = question["query"]
        found = [job for job in self.jobs.values() if _listed(job, query)]
        found.sort(key=lambda job: -int(job["submittedAt"]["epochMs"]))
        offset, limit = query.get("offset", 0), query["limit"]
        page = found[offset : offset + limit]
        more = offset + limit < len(found)
        return ok({**({"jobs": page} if page else {}), "totalCount": len(found), "hasMore": more})

    def _FetchLogs(self, question: Object) -> HttpAnswer:
        source, regex = question["source"], question["matchScope"] == "MATCH_SCOPE_REGEX"
        since, cursor = int(question.get("sinceMs", 0)), int(question.get("cursor", 0))
        found = [
            line
            for line in self.lines
            if (re.search(source, line["key"]) if regex else line["key"].startswith(source))
            and int(line["timestamp"]["epochMs"]) > since
            and int(line["seq"]) > cursor
        ]
        most = question["maxLines"]
        found = found[-most:] if question.get("tail") else found[:most]
        last = found[-1]["seq"] if found else str(cursor)
        return ok({**({"entries": found} if found else {}), "cursor": last})


def _listed(job: Object, query: Object) -> bool:
    if query.get("scope") == "JOB_QUERY_SCOPE_CHILDREN":
        return bool(job["parentJobId"] == query["parentJobId"])
    if query.get("scope") == "JOB_QUERY_SCOPE_ROOTS" and job["parentJobId"]:
        return False
    return str(job["jobId"]).startswith(query.get("jobIdPrefix", ""))


@dataclass
class Recorded:
    """Gives the recorded answers of one case."""

    case: str
    asked: list[str] = field(default_factory=list)

    async def request(self, method: str, url: str, **more: Any) -> HttpAnswer:
        name = url.rpartition("/")[2]
        self.asked.append(name)
        found = recorded(self.case, name)
        if not found:
            return ok({})
        one = found[0]
        return HttpAnswer(one["status"], JSON, json.dumps(one["answer"]).encode())

    async def close(self) -> None: ...
