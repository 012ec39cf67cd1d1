"""Scripts at the far side of a connection that a person has logged in (the `ssh` program)."""

from jobmond.transports.openssh.transport import OpensshTransport

__all__ = ["OpensshTransport"]
