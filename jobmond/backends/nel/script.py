"""The scripts by which nel, its database and the folders of its jobs are asked."""

import re
import shlex
from collections.abc import Mapping, Sequence

# nel opens a master connection of its own and, when it is killed, leaves it behind: in a session of
# its own, where no signal to its group arrives. Each call has a folder for temporary files; a
# master whose socket is left there is told to go, and so are those of calls that died before.
_NEL = """\
umask 077
base=${{TMPDIR:-/tmp}}
clear() {{
  for socket in "$1"/*/socket; do
    [ -S "$socket" ] || continue
    timeout -k 1 5 ssh -o BatchMode=yes -O exit -S "$socket" nobody </dev/null >/dev/null 2>&1
  done
  rm -rf "$1"
}}
find "$base" -maxdepth 1 -name 'jobmond-nel.*' -user "$(id -u)" -mmin +15 2>/dev/null |
  head -n 20 | while IFS= read -r old; do clear "$old"; done
own=$(mktemp -d "$base/jobmond-nel.XXXXXX") || exit 125
trap 'clear "$own"' EXIT
trap 'exit 143' HUP INT TERM
TMPDIR=$own SSH_ASKPASS_REQUIRE=never NEMO_EVALUATOR_DISABLE_COLOR=1
export TMPDIR SSH_ASKPASS_REQUIRE NEMO_EVALUATOR_DISABLE_COLOR
{environment}
timeout -k 2 {each_s} {command} </dev/null
exit $?
"""

NOT_THERE, NOT_READABLE = 3, 4

_DATABASE = """\
LC_ALL=C
export LC_ALL
{environment}
db=${{NEMO_EVALUATOR_EXEC_DB_FILE:-$HOME/.nemo-evaluator/exec-db/exec.v1.jsonl}}
[ -e "$db" ] || {{ printf '%s' "$db"; exit 3; }}
[ -f "$db" ] && [ -r "$db" ] || {{ printf '%s' "$db"; exit 4; }}
{named}
{recent}
exit 0
"""

# `artifacts` is where results are put; `.slurm_job_id.list` has a line for each job of a chain that
# went on from the one before.
_FOLDERS = """\
LC_ALL=C
export LC_ALL
boot=$(sed -n 's/^btime //p' /proc/stat 2>/dev/null)
say() {{ printf '\\n%s %s\\n' {mark} "$*"; }}
part() {{
  [ -f "$3" ] || return 0
  say "$1" "$2"
  timeout -k 1 5 head -c "$4" -- "$3" 2>/dev/null
}}
look() {{
  say folder "$1"
  if [ ! -d "$2" ]; then say none "$1"; return; fi
  part chain "$1" "$2/.slurm_job_id.list" 8192
  part done "$1" "$2/artifacts/progress" 32
  if [ "$3" = scores ]; then
    part results "$1" "$2/artifacts/results.yml" 262144
    part config "$1" "$2/artifacts/run_config.yml" 65536
  fi
  begun=$(stat -L -c %Y -- "$2/logs/stage.running" 2>/dev/null)
  if [ -n "$begun" ] && [ -n "$boot" ] && [ "$begun" -lt "$boot" ]; then say rebooted "$1"; fi
}}
{looks}
say end end
exit 0
"""


def call(command: Sequence[str], *, each_s: int, home: str | None, exec_db: str | None) -> bytes:
    """One call of nel, in a process group of its own and with a time limit."""
    script = _NEL.format(
        environment=_environment(home, exec_db), each_s=each_s, command=shlex.join(command)
    )
    return script.encode()


def database(
    ids: Sequence[str], *, recent_bytes: int, home: str | None, exec_db: str | None
) -> bytes:
    """The lines of the database about `ids`, and its last bytes (none: 0)."""
    words = " ".join(f"-e {shlex.quote(one)}" for one in ids)
    named = f'timeout -k 1 10 grep -aF {words} -- "$db"' if ids else ":"
    recent = f'timeout -k 1 10 tail -c {recent_bytes} -- "$db"' if recent_bytes else ":"
    script = _DATABASE.format(environment=_environment(home, exec_db), named=named, recent=recent)
    return script.encode()


def _environment(home: str | None, exec_db: str | None) -> str:
    lines = []
    if home is not None:
        # Either the home folder or nel's own folder in it.
        folder = home.removesuffix("/").removesuffix("/.nemo-evaluator") or "/"
        lines.append(f"HOME={shlex.quote(folder)}; export HOME; unset NEMO_EVALUATOR_EXEC_DB_FILE")
    if exec_db is not None:
        lines.append(f"NEMO_EVALUATOR_EXEC_DB_FILE={shlex.quote(exec_db)}")
        lines.append("export NEMO_EVALUATOR_EXEC_DB_FILE")
    return "\n".join(lines)


def folders(wanted: Sequence[tuple[str, bool]], mark: str) -> bytes:
    """What stands in the folders of jobs; the flag says whether scores are wanted too."""
    looks = "\n".join(
        f"look {i} {shlex.quote(path)} {'scores' if scores else 'chain'}"
        for i, (path, scores) in enumerate(wanted)
    )
    return _FOLDERS.format(mark=mark, looks=looks).encode()


_LINE = re.compile(rb"(?P<what>[a-z]+) (?P<which>\d+|end)")


def told(stdout: bytes, mark: str) -> Mapping[tuple[str, int], bytes] | None:
    """What `folders` found, by what and which; None where it did not come whole."""
    pieces = re.split(rb"\n%b (?=[a-z]+ (?:\d+|end)\n)" % mark.encode(), stdout)
    if len(pieces) < 2 or pieces[-1].strip() != b"end end":
        return None
    found: dict[tuple[str, int], bytes] = {}
    for piece in pieces[1:-1]:
        head, _, body = piece.partition(b"\n")
        line = _LINE.fullmatch(head)
        if line is not None and line["which"] != b"end":
            found[line["what"].decode(), int(line["which"])] = body
    return found
