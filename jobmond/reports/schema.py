"""JSON Schemas of what programs may rely on. Objects may gain fields, never lose them."""

from collections.abc import Iterable
from typing import Any

from jobmond.analysis.grid import Standing
from jobmond.analysis.shaping import Regime
from jobmond.model.state import Bucket, ClusterStatus, Kind, Severity, State

_Schema = dict[str, Any]

PHASES = ("queued", "bring-up", "training", "finishing", "done", "failed")
LOG_STATUS = ("read", "empty", "absent", "unavailable", "not-read", "none")
ACTIONS = ("cancel-and-salvage", "cancel", "inspect", "consolidate", "none")
NEWS_TYPES = (
    "transition", "signal", "cleared", "restart", "recovered", "cluster", "followup", "digest",
)  # fmt: skip

_TEXT: _Schema = {"type": "string"}
_TEXT_OR_NULL: _Schema = {"type": ["string", "null"]}
_INTEGER_OR_NULL: _Schema = {"type": ["integer", "null"]}
_NUMBER_OR_NULL: _Schema = {"type": ["number", "null"]}
_COUNT: _Schema = {"type": "integer", "minimum": 0}
_COUNT_OR_NULL: _Schema = {"type": ["integer", "null"], "minimum": 0}
_FLAG: _Schema = {"type": "boolean"}
_INSTANT: _Schema = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$",
}
_INSTANT_OR_NULL: _Schema = {"anyOf": [_INSTANT, {"type": "null"}]}
_NUMBER: _Schema = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}


def _one_of(words: Iterable[str], *, null: bool = False) -> _Schema:
    values = [str(word) for word in words]
    return {"enum": [*values, None] if null else values}


def _object(required: _Schema, optional: _Schema | None = None) -> _Schema:
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
    }


def _or_null(schema: _Schema) -> _Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(items: _Schema) -> _Schema:
    return {"type": "array", "items": items}


def _map(values: _Schema) -> _Schema:
    return {"type": "object", "additionalProperties": values}


_SIGNAL = _object(
    {
        "rule": _TEXT,
        "severity": _one_of(Severity),
        "title": _TEXT,
        "step": _INTEGER_OR_NULL,
        "last_step": _INTEGER_OR_NULL,
        "evidence": {"type": "object"},
        "action": _one_of(ACTIONS),
    },
    {"recovered_at": _INSTANT, "replayed": _FLAG},
)

_DIAGNOSIS = _or_null(
    _object(
        {
            "cause": _TEXT,
            "summary": _TEXT,
            "line": _INTEGER_OR_NULL,
            "first_line": _INTEGER_OR_NULL,
            "offset": _COUNT_OR_NULL,
            "excerpt": _list(_TEXT),
            "fingerprint": _TEXT_OR_NULL,
            "victims": _COUNT_OR_NULL,
        },
        {
            "log": _TEXT,
            "recurrence": _object(
                {
                    "count": {"type": "integer", "minimum": 1},
                    "dates": _list(_INSTANT),
                    "interval_s": _COUNT_OR_NULL,
                    "fixed_s": _COUNT_OR_NULL,
                    "transient": {"type": ["boolean", "null"]},
                    "previous": _TEXT_OR_NULL,
                    "elsewhere": _COUNT,
                    "words": _TEXT,
                }
            ),
        },
    )
)

_TASKS = _or_null(
    _object({"total": _COUNT, "by_state": _map(_COUNT), "failed": {**_list(_TEXT), "maxItems": 10}})
)

_DAEMON = _object(
    {"running": _FLAG, "host": _TEXT},
    {
        "version": _TEXT,
        "last_sweep_at": _INSTANT_OR_NULL,
        "next_sweep_at": _INSTANT_OR_NULL,
        "problems": _list(_TEXT),
    },
)

_CLUSTER = _object(
    {
        "name": _TEXT,
        "kind": _TEXT,
        "active": _FLAG,
        "status": _one_of(ClusterStatus),
        "since": _INSTANT_OR_NULL,
        "last_ok_at": _INSTANT_OR_NULL,
        "error": _TEXT_OR_NULL,
        "notes": _TEXT_OR_NULL,
        "logins_per_h": _COUNT,
        "calls_per_h": _COUNT,
    },
    {"remedy": _TEXT_OR_NULL, "log_bytes_per_h": _COUNT},
)

_SINK = _object(
    {
        "name": _TEXT,
        "configured": _FLAG,
        "undelivered": _COUNT,
        "retry_at": _INSTANT_OR_NULL,
        "given_up": _COUNT,
        "given_up_at": _INSTANT_OR_NULL,
        "last_error": _TEXT_OR_NULL,
    }
)

JOB = _object(
    {
        "ref": _TEXT,
        "cluster": _TEXT,
        "native_id": _TEXT,
        "kind": _one_of(Kind),
        "bucket": _one_of(Bucket),
        "type": _TEXT,
        "name": _TEXT,
        "run": _TEXT,
        "user": _TEXT_OR_NULL,
        "owner": _TEXT_OR_NULL,
        "labels": _list(_TEXT),
        "tracked": _FLAG,
        "stale": _FLAG,
        "state": _one_of(State),
        "native_state": _TEXT,
        "reason": _TEXT_OR_NULL,
        "exit_code": _INTEGER_OR_NULL,
        "signal": _INTEGER_OR_NULL,
        "submitted_at": _INSTANT_OR_NULL,
        "started_at": _INSTANT_OR_NULL,
        "ended_at": _INSTANT_OR_NULL,
        "seen_at": _INSTANT_OR_NULL,
        "elapsed_s": _COUNT_OR_NULL,
        "time_limit_s": _COUNT_OR_NULL,
        "start_estimate_at": _INSTANT_OR_NULL,
        "eta_s": _NUMBER_OR_NULL,
        "nodes": _TEXT_OR_NULL,
        "phase": _one_of(PHASES, null=True),
        "life": {"type": "integer", "minimum": 1},
        "step": _INTEGER_OR_NULL,
        "max_step": _INTEGER_OR_NULL,
        "metrics": _map(_NUMBER),
        "trend": _TEXT_OR_NULL,
        "note": _TEXT_OR_NULL,
        "successor": _TEXT_OR_NULL,
        "tasks": _TASKS,
        "signals": _list(_SIGNAL),
        "diagnosis": _DIAGNOSIS,
        "log": _object(
            {
                "path": _TEXT_OR_NULL,
                "status": _one_of(LOG_STATUS),
                "bytes": _COUNT_OR_NULL,
                "error": _TEXT_OR_NULL,
            }
        ),
    },
    {
        "agent_log": _TEXT_OR_NULL,
        "session": {"type": "object"},
        "message": _TEXT,
        "probe": _TEXT,
        "banked": {"type": "object"},
        "model": _TEXT_OR_NULL,
        "benchmark": _TEXT_OR_NULL,
        "dialect": _TEXT_OR_NULL,
        "rate_s_per_step": _NUMBER_OR_NULL,
        "resumed_from": _INTEGER_OR_NULL,
        "checkpoints": _list({"type": "integer"}),
        "behind_bytes": _COUNT,
        "top_exception": _TEXT_OR_NULL,
        "scores": _list(_object({"name": _TEXT, "value": _NUMBER})),
        "infra": _map({"type": ["boolean", "null"]}),
        "avg_turns_source": _TEXT_OR_NULL,
        "mean_reward_basis": _TEXT_OR_NULL,
        "shaping": _one_of(Regime),
    },
)

_CELL = _object(
    {
        "run": _TEXT,
        "ref": _TEXT,
        "step": _INTEGER_OR_NULL,
        "max_step": _INTEGER_OR_NULL,
        "progress": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "eta_s": _NUMBER_OR_NULL,
    }
)

_GRID = _or_null(
    _object(
        {
            "cells": {"type": "integer", "minimum": 2},
            "tally": _object({standing.value: _COUNT for standing in Standing}),
            "running": _list(_CELL),
            "long_pole": _or_null(_CELL),
        }
    )
)

_NEWS_JOB = _or_null(
    _object({"ref": _TEXT, "name": _TEXT, "bucket": _one_of(Bucket), "run": _TEXT})
)

SCHEMAS: dict[str, _Schema] = {
    "status": _object(
        {
            "schema": {"const": 1},
            "generated_at": _INSTANT,
            "daemon": _DAEMON,
            "clusters": _list(_CLUSTER),
            "summary": _object({"line": _TEXT, "tracked": _COUNT, "by_state": _map(_COUNT)}),
            "jobs": _list(JOB),
        },
        {"sinks": _list(_SINK), "sft_grid": _GRID},
    ),
    "news": _object(
        {
            "schema": {"const": 1},
            "key": _TEXT,
            "at": _INSTANT,
            "type": _one_of(NEWS_TYPES),
            "severity": _one_of(Severity),
            "job": _NEWS_JOB,
            "before": _TEXT_OR_NULL,
            "after": _TEXT_OR_NULL,
            "native": _TEXT_OR_NULL,
            "correction": _FLAG,
            "title": _TEXT,
            "body": _TEXT_OR_NULL,
            "diagnosis": _DIAGNOSIS,
            "agent_log": _TEXT_OR_NULL,
        },
        {
            "signal": _SIGNAL,
            "cluster": _TEXT,
            "followup": _object(
                {"id": {"type": ["integer", "string"]}, "kind": _TEXT, "state": _TEXT}
            ),
            "owed": _list(_object({"id": _COUNT, "kind": _TEXT, "ref": _TEXT})),
            "successor": _TEXT,
        },
    ),
    "inspect": _object(
        {
            "schema": {"const": 1},
            "path": _TEXT,
            "bucket": _one_of(Bucket),
            "dialect": _TEXT,
            "bytes": _COUNT_OR_NULL,
            "lines": _COUNT_OR_NULL,
            "life": {"type": "integer", "minimum": 1},
            "resumed_from": _INTEGER_OR_NULL,
            "phase": _one_of(PHASES, null=True),
            "step": _INTEGER_OR_NULL,
            "max_step": _INTEGER_OR_NULL,
            "metrics": _map(_NUMBER),
            "series": _map(_list({"type": "array", "prefixItems": [{"type": "integer"}, _NUMBER]})),
            "rate_s_per_step": _NUMBER_OR_NULL,
            "eta_s": _NUMBER_OR_NULL,
            "checkpoints": _list({"type": "integer"}),
            "signals": _list(_SIGNAL),
            "diagnosis": _DIAGNOSIS,
        },
        {"files": _COUNT, "events": _list(_map({}))},
    ),
}


def schema(name: str) -> _Schema:
    """The JSON Schema (2020-12) of `status`, `news` or `inspect`.

    Raises:
        KeyError: no contract has that name.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"jobmond {name}, schema 1",
        **SCHEMAS[name],
    }
