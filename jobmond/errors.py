"""The exception tree. Each class says whether trying again can help.

Every message is one line, names the thing and, where there is one, the fix.
"""


class JobmondError(Exception):
    """Anything jobmond says to a person instead of a traceback."""

    exit_code = 1


class ConfigError(JobmondError):
    """The configuration or the command line is wrong; nothing changes until a person edits it."""

    exit_code = 2


class DaemonUnreachable(JobmondError):
    """No daemon answers at the socket."""

    exit_code = 3


class Refused(JobmondError):
    """The request was understood and will not be done (unknown job, second daemon, not yours)."""


class StoreError(JobmondError):
    """The database cannot be used."""


class DatabaseFromTheFuture(StoreError):
    """The database was migrated by a newer jobmond; only upgrading helps."""


class TransportError(JobmondError):
    """The far side gave no answer."""


class TransientTransportError(TransportError):
    """Connection refused, lost, timed out, cut short: back off and try again by itself."""


class NeedsPersonError(TransportError):
    """Authentication, host key, key file: never tried again until somebody acts.

    `remedy` is the command that helps, on one line.
    """

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy


class SinkError(JobmondError):
    """A sink did not take a delivery."""


class SinkRetry(SinkError):
    """Trying again can help. `after_s` is what the receiver asked for, if it did."""

    def __init__(self, message: str, *, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class SinkRefusal(SinkError):
    """The sink will never take this delivery."""
