"""Scripts at the far side of an SSH connection (asyncssh)."""

from jobmond.transports.ssh.transport import SshTransport

__all__ = ["SshTransport"]
