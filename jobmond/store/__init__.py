"""What jobmond remembers: synchronous SQLAlchemy Core, one writer, frozen values in and out."""

from jobmond.store.lock import StoreLock
from jobmond.store.store import Store

__all__ = ["Store", "StoreLock"]
