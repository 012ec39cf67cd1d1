"""Whatever a controller or something in its place sends, nothing but our own errors comes of it."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.backends.iris import IrisBackend, records, verdict
from jobmond.backends.iris.logs import IrisLogs
from jobmond.backends.iris.rpc import said
from jobmond.errors import TransportError
from jobmond.model.observation import (
    Ask,
    Follow,
    LogAsk,
    Read,
    Seen,
    Unavailable,
    Unreachable,
)
from jobmond.ports import HttpAnswer
from tests.controller import JSON, recorded
from tests.doubles_store import FixedClock

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
WORDS = st.sampled_from(
    ["jobId", "state", "submittedAt", "epochMs", "taskStateCounts", "running", "tasks", "exitCode",
     "JOB_STATE_RUNNING", "TASK_STATE_FAILED", "/alice/train", "attempts", "code", "not_found",
     "entries", "seq", "key", "data", "job", "jobs", "states", "1795967241072", "hasChildren"]
)  # fmt: skip
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=12,
)
STATUS = st.sampled_from([200, 204, 302, 400, 401, 404, 429, 500, 502, 503])


class Always:
    def __init__(self, answer: HttpAnswer) -> None:
        self.answer = answer

    async def request(self, *given: Any, **more: Any) -> HttpAnswer:
        return self.answer

    async def close(self) -> None: ...


@given(STATUS, st.binary(max_size=200) | VALUES.map(lambda v: json.dumps(v).encode()))
def test_an_answer_is_an_object_or_an_error_of_one_line(status: int, body: bytes) -> None:
    try:
        found = said("GetJobState", HttpAnswer(status, JSON, body))
    except TransportError as error:
        assert str(error).isprintable()
    else:
        assert status == 200
        assert isinstance(found, dict)


@given(VALUES, VALUES)
def test_any_record_is_seen_or_not_understood(raw: object, tasks: object) -> None:
    record = records.record(raw)
    if record is not None:
        evidence = verdict.Evidence(record, records.tasks(tasks))
        shown = verdict.seen(evidence, NOW)
        assert isinstance(shown, Seen | Unreachable)


@given(STATUS, VALUES)
async def test_any_answer_to_everything_moves_a_job_only_by_its_words(
    status: int, value: object
) -> None:
    far = Always(HttpAnswer(status, JSON, json.dumps(value).encode()))
    ask = Ask("alice/train", "1795967241072", NOW)
    backend = IrisBackend(far, FixedClock(), url="http://iris", users=("alice",))
    poll = await backend.poll([ask], since=NOW, now=NOW, timeout_s=9)
    assert set(poll.sightings) == {"alice/train"}
    assert isinstance(poll.sightings["alice/train"], Seen | Unreachable)
    logs = IrisLogs(far, FixedClock(), url="http://iris")
    follow = Follow(None, (), 1000)
    found = await logs.read_tails(
        [LogAsk("alice/train", None, None, 99, follow)], now=NOW, timeout_s=9
    )
    assert isinstance(found["alice/train"], Read | Unavailable)


@pytest.mark.parametrize("method", ["GetJobState", "GetJobStatus", "ListTasks", "FetchLogs"])
def test_an_answer_cut_anywhere_is_no_answer(method: str) -> None:
    whole = json.dumps(recorded("bad", method)[0]["answer"]).encode()
    for at in range(len(whole)):
        with pytest.raises(TransportError):
            said(method, HttpAnswer(200, JSON, whole[:at]))
