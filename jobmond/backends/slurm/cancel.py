"""Cancelling jobs of SLURM: the script, and its answer taken apart. Pure."""

import shlex
from collections.abc import Mapping, Sequence

from jobmond.analysis.visible import readable, visible
from jobmond.backends.slurm.script import Nonce, prelude
from jobmond.model.intent import Stop, Stopped, Target

# Of a job only what no user can choose is printed: id, submit time, state. One that waits (again)
# is not the life that was judged. A job whose successor could not be cancelled is kept: the
# successor would start on what the job leaves.
_SCRIPT = """\
tell() {{ printf '\\n%s stop %s %s %.300s\\n' {mark} "$1" "$2" "$3"; }}
kept=
stop() {{
  if [ "$3" = no ] && [ -n "$kept" ]; then
    tell "$1" kept "$kept waits for it and could not be cancelled"
    return
  fi
  seen=$(timeout -k 2 {each_s} squeue -h -j "$1" -t all -o '%i|%V|%T' 2>/dev/null)
  rc=$?
  case $rc,$seen in
    0,"$1|$2|PENDING" | 0,"$1_["*"]|$2|PENDING")
      if [ "$3" = no ]; then tell "$1" ended PENDING; return; fi
      case $seen in
        *'|RUNNING'*) tell "$1" another ''; kept=$1; return ;;
      esac ;;
    0,"$1|$2|RUNNING" | 0,"$1|$2|SUSPENDED" | 0,"$1|$2|CONFIGURING")
      if [ "$3" = yes ]; then tell "$1" ended "${{seen##*|}}"; return; fi ;;
    0,"$1|$2|"*) tell "$1" ended "${{seen##*|}}"; return ;;
    0,) tell "$1" gone ''; return ;;
    0,*)
      tell "$1" another ''
      # Perhaps an array of which some run already; nobody can tell what waits for the job.
      if [ "$3" = yes ]; then kept=$1; fi
      return ;;
    *)
      why=$(timeout -k 2 {each_s} squeue -h -j "$1" -t all -o %i 2>&1 >/dev/null)
      case $why in
        *'Invalid job id'*) tell "$1" gone '' ;;
        *) tell "$1" refused "squeue ended with $rc: $why"; kept=$1 ;;
      esac
      return ;;
  esac
  said=$(timeout -k 2 {each_s} scancel "$1" 2>&1 </dev/null)
  rc=$?
  if [ "$rc" = 0 ]; then
    tell "$1" asked ''
  else
    tell "$1" refused "scancel ended with $rc: $said"
    kept=$1
  fi
}}
{stops}
exit 0
"""


def script(nonce: Nonce, targets: Sequence[Target], *, each_s: int, bin_dir: str | None) -> bytes:
    """Cancels `targets` in their order, each after a look at what it is now."""
    stops = "\n".join(
        f"stop {shlex.quote(t.native_id)} {shlex.quote(t.birth)} {'yes' if t.waiting else 'no'}"
        for t in targets
    )
    text = _SCRIPT.format(mark=nonce.frame, each_s=each_s, stops=stops)
    return (prelude(nonce, bin_dir) + text).encode()


def answers(stdout: bytes, nonce: Nonce, targets: Sequence[Target]) -> Mapping[str, Stopped]:
    """By native id; a target of which nothing whole arrived has none."""
    found: dict[str, Stopped] = {}
    known = {target.native_id for target in targets}
    for line in stdout.split(b"\n"):
        mark, _, rest = line.partition(b" stop ")
        native_id, _, words = readable(rest).partition(" ")
        word, _, said = words.partition(" ")
        if mark != nonce.frame.encode() or native_id not in known or word not in set(Stop):
            continue
        found[native_id] = Stopped(Stop(word), visible(said.strip()))
    return found
