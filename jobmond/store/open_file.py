"""Whether the database's file is still the one that was opened, and as large as it was."""

from dataclasses import dataclass
from pathlib import Path

from jobmond.errors import StoreError


@dataclass(slots=True)
class OpenFile:
    """A file, which one it was, and the size that it has reached.

    SQLite goes on writing to a file that was removed: all of it would be gone at the next start.
    Where it was cut short, it goes on from its memory for a while, and buries what is left.
    Nothing here ever makes the file smaller. It is never opened to look: closing it again would
    drop the locks that SQLite holds on it.
    """

    path: Path
    device: int
    inode: int
    size_bytes: int = 0
    cut: bool = False

    @classmethod
    def at(cls, path: Path) -> "OpenFile":
        """Raises OSError where there is none."""
        status = path.stat()
        return cls(path, status.st_dev, status.st_ino)

    def check(self) -> None:
        """Raises StoreError where another file, or none, is at the path now, and from then on
        where it was cut short: what is in memory belongs to the one before."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            raise self._error("removed") from None
        except OSError:
            return  # a folder that cannot be looked into for a moment proves nothing
        if (status.st_dev, status.st_ino) != (self.device, self.inode):
            raise self._error("replaced")
        self.cut = self.cut or status.st_size < self.size_bytes
        if self.cut:
            raise self._error("cut short")
        self.size_bytes = status.st_size

    def _error(self, how: str) -> StoreError:
        return StoreError(
            f"the database {self.path} was {how} while in use: stop jobmond, "
            f"put the right file there without a {self.path.name}-wal, start it again"
        )
