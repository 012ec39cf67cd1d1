"""Whether the database's file is still the one that was opened."""

from dataclasses import dataclass
from pathlib import Path

from jobmond.errors import StoreError


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file and which one it was.

    SQLite goes on writing to a file that was removed: all of it would be gone at the next start.
    """

    path: Path
    device: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> "OpenFile":
        """Raises OSError where there is none."""
        status = path.stat()
        return cls(path, status.st_dev, status.st_ino)

    def check(self) -> None:
        """Raises StoreError where another file, or none, is at the path now."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            raise self._error("removed") from None
        except OSError:
            return  # a folder that cannot be looked into for a moment proves nothing
        if (status.st_dev, status.st_ino) != (self.device, self.inode):
            raise self._error("replaced")

    def _error(self, how: str) -> StoreError:
        return StoreError(
            f"the database {self.path} was {how} while in use: "
            "stop jobmond, put the right file there, start it again"
        )
