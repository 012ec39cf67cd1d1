"""What does not work: said once, and once more when it works again."""

from dataclasses import dataclass, field

import structlog

from jobmond.errors import JobmondError

journal = structlog.get_logger("jobmond.daemon")


@dataclass(slots=True)
class Troubles:
    """Which kinds of work fail, by what they say. Work that failed is called by its name."""

    _known: dict[str, set[str]] = field(default_factory=dict)

    @property
    def newest(self) -> str | None:
        """The trouble that began last, of those that are not over."""
        return next(reversed(self._known), None)

    def failed(self, work: str, error: BaseException | str) -> None:
        """`work` failed; the journal hears of every error once, however much fails of it.

        What no message was written for is told with where it comes from.
        """
        said = error if isinstance(error, str) else str(error) or type(error).__name__
        for other in [e for e, works in self._known.items() if e != said and work in works]:
            self._without(work, other)
        if said not in self._known:
            unforeseen = not isinstance(error, str | JobmondError)
            journal.error("failed", what=work, **{"exc_info" if unforeseen else "error": error})
        self._known.setdefault(said, set()).add(work)

    def worked(self, work: str) -> None:
        """`work` was done. A trouble is over when all that failed of it was done since."""
        for error in [e for e, works in self._known.items() if work in works]:
            if self._without(work, error):
                journal.info("works again", what=work, was=error)

    def _without(self, work: str, error: str) -> bool:
        self._known[error].discard(work)
        if self._known[error]:
            return False
        del self._known[error]
        return True
