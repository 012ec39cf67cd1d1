"""The addresses of the interface: each reads a request, asks the desk, and answers JSON."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from jobmond.api.faults import on_defect, on_http_error, on_jobmond_error
from jobmond.api.wire import answer, body_of
from jobmond.desk.desk import Desk
from jobmond.desk.failed import FailuresRequest, failures
from jobmond.desk.fields import read_object
from jobmond.desk.peer import Peer
from jobmond.desk.requests import (
    FOLLOWUP_NUMBER,
    AddRequest,
    CloseRequest,
    EventsRequest,
    HistoryRequest,
    ImportRequest,
    LocalExit,
    LocalStart,
    LogRequest,
    SweepRequest,
    read_all_flag,
    read_change,
    read_job_word,
    read_refs,
)
from jobmond.errors import JobmondError

Answer = Callable[[Desk, Request, Peer], Awaitable[Any]]


def application(desk: Desk, health: Callable[[], Mapping[str, Any]]) -> Starlette:
    """The whole interface. `health` gives `{"version", "host", "pid", "schema"}`."""

    async def alive(desk: Desk, request: Request, peer: Peer) -> Any:
        _no_query(request)
        return dict(health())

    table: tuple[tuple[str, str, Answer], ...] = (
        ("GET", "/v1/health", alive),
        ("GET", "/v1/status", _status),
        ("POST", "/v1/jobs", _add),
        ("GET", "/v1/job", _show),
        ("PATCH", "/v1/job", _change),
        ("DELETE", "/v1/job", _remove),
        ("GET", "/v1/job/log", _log),
        ("GET", "/v1/history", _history),
        ("GET", "/v1/events", _events),
        ("GET", "/v1/discover", _discover),
        ("POST", "/v1/discover", _track_found),
        ("POST", "/v1/sweeps", _sweep),
        ("POST", "/v1/import", _import),
        ("GET", "/v1/export", _export),
        ("GET", "/v1/failures", _failures),
        ("GET", "/v1/followups", _followups),
        ("POST", "/v1/followups/{number}/close", _close),
        ("POST", "/v1/local", _announce),
        ("POST", "/v1/local/exit", _local_ended),
    )
    return Starlette(
        routes=[_route(desk, path, table) for path in dict.fromkeys(row[1] for row in table)],
        exception_handlers={
            JobmondError: on_jobmond_error,
            HTTPException: on_http_error,
            Exception: on_defect,
        },
    )


def _route(desk: Desk, path: str, table: tuple[tuple[str, str, Answer], ...]) -> Route:
    by_method = {method: ask for method, place, ask in table if place == path}

    async def endpoint(request: Request) -> Response:
        peer: Peer = request.scope["state"]["peer"]
        desk.rights.check_read(peer)
        ask = by_method.get(request.method)
        if ask is None:  # HEAD comes with GET
            raise HTTPException(405)
        return answer(await ask(desk, request, peer))

    return Route(path, endpoint, methods=list(by_method))


def _no_query(request: Request) -> None:
    read_object(request.query_params, {})


async def _status(desk: Desk, request: Request, peer: Peer) -> Any:
    _no_query(request)
    return await desk.status(peer)


async def _add(desk: Desk, request: Request, peer: Peer) -> Any:
    return {"jobs": await desk.add(AddRequest.read(await body_of(request)), peer)}


async def _show(desk: Desk, request: Request, peer: Peer) -> Any:
    return {"job": await desk.show(read_job_word(request.query_params), peer)}


async def _change(desk: Desk, request: Request, peer: Peer) -> Any:
    word = read_job_word(request.query_params)
    return {"job": await desk.change(word, read_change(await body_of(request)), peer)}


async def _remove(desk: Desk, request: Request, peer: Peer) -> Any:
    return await desk.remove(read_job_word(request.query_params), peer)


async def _log(desk: Desk, request: Request, peer: Peer) -> Any:
    return await desk.log(LogRequest.read(request.query_params), peer)


async def _history(desk: Desk, request: Request, peer: Peer) -> Any:
    return {"jobs": await desk.history(HistoryRequest.read(request.query_params), peer)}


async def _events(desk: Desk, request: Request, peer: Peer) -> Any:
    return await desk.events(EventsRequest.read(request.query_params), peer)


async def _discover(desk: Desk, request: Request, peer: Peer) -> Any:
    _no_query(request)
    return {"jobs": await desk.discover(peer)}


async def _track_found(desk: Desk, request: Request, peer: Peer) -> Any:
    return {"jobs": await desk.track_found(read_refs(await body_of(request)), peer)}


async def _sweep(desk: Desk, request: Request, peer: Peer) -> Any:
    return {"clusters": await desk.sweep(SweepRequest.read(await body_of(request)), peer)}


async def _import(desk: Desk, request: Request, peer: Peer) -> Any:
    return await desk.take_in(ImportRequest.read(await body_of(request)), peer)


async def _export(desk: Desk, request: Request, peer: Peer) -> Any:
    _no_query(request)
    return await desk.give_out(peer)


async def _failures(desk: Desk, request: Request, peer: Peer) -> Any:
    return await failures(desk, FailuresRequest.read(request.query_params), peer)


async def _followups(desk: Desk, request: Request, peer: Peer) -> Any:
    every = read_all_flag(request.query_params)
    return {"followups": await desk.followups(peer, every=every)}


async def _close(desk: Desk, request: Request, peer: Peer) -> Any:
    wish = CloseRequest.read(await body_of(request))
    number = FOLLOWUP_NUMBER.read("follow-up", request.path_params["number"])
    return await desk.close_followup(number, wish, peer)


async def _announce(desk: Desk, request: Request, peer: Peer) -> Any:
    return await desk.announce(LocalStart.read(await body_of(request)), peer)


async def _local_ended(desk: Desk, request: Request, peer: Peer) -> Any:
    return await desk.local_ended(LocalExit.read(await body_of(request)), peer)
