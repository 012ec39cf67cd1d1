"""Whether trees that somebody was to remove are still there."""

import shlex
from collections.abc import Iterator, Sequence

from jobmond.analysis.visible import readable, visible
from jobmond.model.observation import Unavailable
from jobmond.model.trials import Remains

# A path that is not there is told with the file system that it would be on: what is not mounted
# is no proof.
_CODE = r"""
LC_ALL=C
export LC_ALL
if about=$(stat -c '%F' -- "$1" 2>&1); then
  echo '{mark} there'
else
  case $about in
    *'No such file'*) echo '{mark} gone' ;;
    *) printf '{mark} why %.300s\n' "$about" | head -n 1 ;;
  esac
fi
near=$1
while [ ! -e "$near" ] && [ "$near" != / ]; do
  near=${{near%/*}}
  [ -n "$near" ] || near=/
done
df -iP -- "$near" 2>/dev/null | awk 'NR == 2 {{
  sub(/^.* [0-9.-]+%? +\//, "/", $0); mount = $0
  print "{mark} mount " mount
}}'
df -iP -- "$near" 2>/dev/null | awk 'NR == 2 && NF > 5 {{ print "{mark} free " $4 }}'
"""


def remains_script(mark: str, paths: Sequence[str], *, each_s: int) -> bytes:
    """The script that looks for each path, one after the other."""
    lines = [
        f"remains_code={shlex.quote(_CODE.format(mark=mark))}",
        f'remains_limit="timeout -k 1 {each_s}"',
        "command -v timeout >/dev/null 2>&1 || remains_limit=",
    ]
    for index, path in enumerate(paths):
        lines += [
            f"echo {mark} path {index}",
            f'$remains_limit /bin/sh -c "$remains_code" sh {shlex.quote(path)} 2>/dev/null',
            f"echo {mark} end {index}",
        ]
    return ("\n".join(lines) + "\n").encode()


def found_remains(stdout: bytes, mark: str, count: int) -> list[Remains | Unavailable]:
    """One answer for each path; what did not arrive whole is unavailable."""
    found: list[Remains | Unavailable] = [Unavailable("nothing arrived")] * count
    index, said = -1, dict[str, str]()
    for word, rest in _lines(stdout, mark.encode()):
        if word == "path":
            index, said = int(rest) if rest.isdigit() else -1, {}
        elif word == "end" and rest == str(index) and 0 <= index < count:
            found[index] = _answer(said)
        else:
            said[word] = rest
    return found


def _lines(stdout: bytes, mark: bytes) -> Iterator[tuple[str, str]]:
    for line in stdout.split(b"\n"):
        if line.startswith(mark + b" "):
            word, _, rest = readable(line[len(mark) + 1 :]).partition(" ")
            yield word, rest


def _answer(said: dict[str, str]) -> Remains | Unavailable:
    if "there" not in said and "gone" not in said:
        return Unavailable(visible(said.get("why", "")) or "the file system does not answer")
    free = said.get("free", "")
    return Remains("there" in said, int(free) if free.isdigit() else None, said.get("mount"))
