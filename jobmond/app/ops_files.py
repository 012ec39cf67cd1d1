"""Ops files read again and again; of each the last good one stands."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import structlog

from jobmond.analysis.visible import visible
from jobmond.errors import ConfigError
from jobmond.settings.clusters import AnyCluster
from jobmond.settings.ops import LARGEST_BYTES, Ops, read_ops, with_ops

journal = structlog.get_logger("jobmond.app")


class OpsFiles:
    """What the ops files of the clusters say. Reads block; one thread at a time a cluster."""

    def __init__(self) -> None:
        self._good: dict[tuple[str, Path], Ops] = {}
        self._wrong: dict[str, str] = {}

    @property
    def problems(self) -> Mapping[str, str]:
        """By cluster, what is wrong with its ops file now."""
        return dict(self._wrong)

    def all(self, tables: Mapping[str, AnyCluster]) -> dict[str, AnyCluster]:
        """Every table as its ops file has it."""
        return {name: self.table(name, table) for name, table in tables.items()}

    def table(self, name: str, table: AnyCluster) -> AnyCluster:
        """The table as its ops file has it now. A bad edit is said once and changes nothing."""
        path = table.ops_file
        if path is None:
            self._wrong.pop(name, None)
            return table
        known = self._good.get((name, path))
        try:
            ops = read_ops(_text(path))
            changed = with_ops(table, ops)
        except ConfigError as wrong:
            self._say(name, f"{path}: {wrong}", kept=known is not None)
            return _applied(table, known)
        self._good[name, path] = ops
        if self._wrong.pop(name, None):
            journal.info("ops file can be read again", cluster=name)
        return changed

    def _say(self, name: str, wrong: str, *, kept: bool) -> None:
        if self._wrong.get(name) != wrong:
            rest = "its last good state stays" if kept else "the configuration alone counts"
            journal.error(f"ops file not taken, {rest}", cluster=name, error=visible(wrong))
        self._wrong[name] = wrong


def _applied(table: AnyCluster, known: Ops | None) -> AnyCluster:
    try:
        return with_ops(table, known) if known is not None else table
    except ConfigError:  # the kind of the cluster was changed meanwhile
        return table


def _text(path: Path) -> str:
    """Raises ConfigError: it cannot be read."""
    try:
        # A pipe must not hold up the sweep.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise ConfigError("no regular file")
            raw = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise ConfigError(str(error.strerror)) from error
    if len(raw) > LARGEST_BYTES:
        raise ConfigError(f"larger than {LARGEST_BYTES} bytes")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"line {line}: not UTF-8") from error
