"""The hosts that a user's ssh_config names."""

import glob
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

_LINE = re.compile(r"\s*([A-Za-z]+)(?:\s*=\s*|\s+)(.*)")
# A pattern is no host; a leading dash would be an option of ssh.
HOST = re.compile(r"[A-Za-z0-9_\[:][\w.:%\]-]{0,254}")
_LARGEST_BYTES = 2**20
_DEEPEST = 16  # as ssh


def ssh_hosts(config: Path, *, home: Path) -> tuple[str, ...]:
    """Every host that `config` and what it includes name outright, in their order.

    Files that cannot be read name none, as for ssh.
    """
    return tuple(dict.fromkeys(_hosts(config, home / ".ssh", home, (config,))))


def _hosts(path: Path, base: Path, home: Path, within: tuple[Path, ...]) -> Iterator[str]:
    for keyword, words in _lines(path):
        if keyword == "host":
            yield from (word for word in words if HOST.fullmatch(word))
        elif keyword == "include" and len(within) <= _DEEPEST:
            for word in words:
                for found in _included(word, base, home):
                    if found not in within:
                        yield from _hosts(found, base, home, (*within, found))


def _lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
            return
        text = path.read_text("utf-8", "replace")
    except OSError:
        return
    for line in text.splitlines():
        found = _LINE.fullmatch(line)
        if found is not None:
            yield found[1].lower(), _words(found[2])


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text, comments=True)
    except ValueError:  # an odd quote
        return text.split()


def _included(word: str, base: Path, home: Path) -> list[Path]:
    pattern = home / word[2:] if word.startswith("~/") else base / word
    return sorted(map(Path, glob.glob(str(pattern))))  # noqa: PTH207 - the pattern is absolute
