"""The configuration file and `JOBMOND_*`, as frozen values.

Importing this package is cheap; `Settings`, `Loaded` and `load` bring pydantic when they are first
touched. Programs that only look for the socket use `jobmond.settings.paths`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobmond.settings.loading import Loaded, load
    from jobmond.settings.tables import Settings

__all__ = ["Loaded", "Settings", "load"]


def __getattr__(name: str) -> Any:
    if name == "Settings":
        from jobmond.settings.tables import Settings

        return Settings
    if name in ("Loaded", "load"):
        from jobmond.settings import loading

        return getattr(loading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
