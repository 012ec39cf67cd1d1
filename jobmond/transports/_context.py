"""Which context of a kubeconfig a cluster goes by where its configuration names none.

It is the current one at the first question, and stays: people switch contexts all day, and the jobs
of one cluster are not to be missed in another.
"""

import json
from contextlib import suppress
from pathlib import Path

from jobmond.errors import NeedsPersonError


def kept(pin: Path | None, source: str) -> str | None:
    """The context noted for `source`, a kubeconfig; None where there is none."""
    if pin is None:
        return None
    try:
        noted = json.loads(pin.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    found = noted.get("context") if isinstance(noted, dict) else None
    return found if isinstance(found, str) and noted.get("kubeconfig") == source else None


def keep(pin: Path | None, source: str, context: str) -> None:
    """Note it. A note that cannot be written is made at the next login."""
    if pin is None:
        return
    text = json.dumps({"kubeconfig": source, "context": context})
    beside = pin.with_name(f"{pin.name}.new")
    with suppress(OSError):
        pin.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside.write_text(text, "utf-8")
        beside.replace(pin)


def missing(context: str, where: str) -> NeedsPersonError:
    """The noted context is no longer in the file."""
    return NeedsPersonError(
        f"{where} has no context {context!r} any more, by which this cluster went so far: set "
        "`context` of this cluster in the configuration",
        remedy="kubectl config get-contexts",
    )
