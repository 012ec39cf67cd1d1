"""The report beside the database, for when no daemon answers."""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def write_report(path: Path, document: Callable[[], Mapping[str, Any]]) -> None:
    """Replace `path` whole or not at all; mode 0600."""
    text = json.dumps(document(), ensure_ascii=False, allow_nan=False)
    handle, name = tempfile.mkstemp(prefix=".report.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
