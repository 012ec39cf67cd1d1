"""What goes wrong, as one line with an exit code."""

from collections.abc import Mapping
from typing import Any

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from jobmond.api.wire import TooLarge, TooSlow, answer
from jobmond.desk.refusals import NotYours, UnknownJob, quoted
from jobmond.errors import ConfigError, DaemonUnreachable, JobmondError, Refused, TransportError

_journal = structlog.get_logger("jobmond.api")

# The nearest class in the exception's ancestry decides.
_STATUS: Mapping[type[BaseException], int] = {
    TooLarge: 413,
    TooSlow: 408,
    ConfigError: 400,
    UnknownJob: 404,
    NotYours: 403,
    Refused: 409,
    TransportError: 502,
    DaemonUnreachable: 503,
    JobmondError: 500,
}


def fault(message: str, *, status: int, exit_code: int) -> Response:
    """The error object, on one line."""
    line = " ".join(message.split()) or "no reason was given"
    return answer({"error": line, "exit_code": exit_code}, status)


def said(error: JobmondError) -> Response:
    """A refusal or failure that jobmond puts into words itself."""
    status = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    return fault(str(error), status=status, exit_code=2 if error.exit_code == 2 else 1)


async def on_jobmond_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, JobmondError):
        raise error
    return said(error)


async def on_http_error(request: Request, error: Exception) -> Response:
    """An address or method the interface does not have."""
    if not isinstance(error, HTTPException):
        raise error
    reasons = {
        404: f"the daemon has no {quoted(request.url.path)}: is jobmonctl of its version?",
        405: f"{quoted(request.url.path)} does not take {quoted(request.method)}",
    }
    reason = reasons.get(error.status_code, str(error.detail))
    return fault(reason, status=error.status_code, exit_code=2)


async def on_defect(request: Request, error: Exception) -> Response:
    """Anything else is a defect: the journal gets the traceback, the person one line."""
    where: Mapping[str, Any] = {"method": request.method, "path": request.url.path}
    _journal.error("request failed", exc_info=error, **where)
    line = f"jobmond failed on this request ({type(error).__name__}); its journal has the details"
    return fault(line, status=500, exit_code=1)
