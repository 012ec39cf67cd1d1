"""The script that looks at trees of trials, all of a cluster's in one go.

A tree costs one listing of each of its jobs (none where the job's own result has not changed) and
one reading of each result that is new. Nothing below a trial is listed; `find` and `du` are never
used. Needs `stat`, `awk`, `sort`, `tr` and `xargs`, as every Linux has them.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobmond.analysis.treestate import Known
from jobmond.backends._trees.sifting import program


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """What one look may cost: results read and their bytes (of all trees), folders in one job,
    jobs in one tree, seconds for one tree.
    """

    files: int = 400
    read_bytes: int = 256 << 20
    entries: int = 100_000
    jobs: int = 300
    each_s: int = 30


# Run for each tree by a shell of its own, so that a file system that hangs takes only its own
# tree along. `tree FILES BYTES PATH…` looks at the first that is there, `knows JOB` sets what is
# known of one job. Every line of ours begins with {mark}, which is random; what belongs to it
# follows.
_CODE = r"""
LC_ALL=C
export LC_ALL
tell() {{ printf '%s %s\n' {mark} "$*"; }}
job_here() {{
  [ -f "$1/job.log" ] && return 0
  [ -f "$1/trial.log" ] && return 1
  [ -f "$1/result.json" ] || [ -f "$1/config.json" ]
}}
enters() {{
  if [ -L "${{1%/}}" ] || [ ! -d "$1" ]; then return 1; fi
  one=${{1%/}}
  case ${{one##*/}} in
    task_chunks | checkpoints | exports | logs | wandb | _retry_* | lost+found) return 1 ;;
  esac
  if job_here "$one"; then printf '%s\n' "${{one#"$top"/}}"; return 1; fi
  [ ! -f "$one/trial.log" ]
}}
jobs_in() {{
  if job_here "$1"; then echo .; return; fi
  for a in "$1"/*/; do
    enters "$a" || continue
    for b in "$a"*/; do
      enters "$b" || continue
      for c in "$b"*/; do enters "$c"; done
    done
  done
}}
chunks() {{
  if [ -d "$1/task_chunks" ]; then
    set -- "$1"/task_chunks/chunk_*/
    if [ -d "$1" ]; then tell chunks $#; fi
  elif [ -f "$1/task_chunk_map.json" ]; then
    tell chunks $(head -c 8000000 -- "$1/task_chunk_map.json" | grep -ao 'chunk_[0-9]*' |
      sort -u | wc -l)
  fi
}}
tree() {{
  files=$1 bytes=$2
  shift 2
  tell now "$(date +%s)"
  first=$1
  for top; do if [ -d "$top" ]; then break; fi; done
  [ -d "$top" ] || top=$first
  tell at "$top"
  if ! about=$(stat -L -c '%F' -- "$top" 2>&1); then
    case $about in
      *'No such file'* | *'Not a directory'*) tell absent ;;
      *) tell why "$(printf '%.300s' "$about" | tr -d '\n')" ;;
    esac
    return
  fi
  if [ ! -r "$top" ] || [ ! -x "$top" ]; then tell denied "$(id -un)"; return; fi
  chunks "$top"
  chunks "$top/trace_jobs"
  found=$(jobs_in "$top" 2>/dev/null | head -n $(({jobs} + 1)))
  [ -n "$found" ] || {{ tell whole; return; }}
  number=0
  while IFS= read -r job; do
    number=$((number + 1))
    if [ "$number" -gt {jobs} ]; then tell why "more than {jobs} jobs are in it"; return; fi
    look "$job" || return
  done <<{mark}
$found
{mark}
  tell whole
}}
look() {{
  cd -- "$top/$1" 2>/dev/null || {{ tell why 'a job in it cannot be entered'; return 1; }}
  root=$(stat -c '%Y %s' -- result.json 2>/dev/null)
  key=$(stat -c '%Y.%i' -- .).${{root% *}}.${{root#* }}
  knows "$1"
  if [ "$key" = "$k_key" ]; then tell same "$key" "$1"; return; fi
  set -- "$1" *
  job=$1
  shift
  if [ $# -gt {entries} ]; then tell why 'more than {entries} entries are in a job'; return 1; fi
  listed=$(listing "$@" | sort -k 1,1 -k 2,2nr)
  tell job "$key" "${{root% *}}" "$job"
  printf '%s\n' "$listed" | awk '$1 == "C" || $1 == "G" {{ print "{mark} " $0 }}'
  plan=$(planned)
  set -- $(printf '%s\n' "$plan" | awk '
    $1 == "R" {{ n++; b += $5 }} $1 == "L" {{ l++ }} END {{ print n + 0, b + 0, l + 0 }}')
  files=$((files - $1)) bytes=$((bytes - $2))
  tell L "$3"
  printf '%s\n' "$plan" | awk '$1 == "O" {{ print "{mark} " $0 }}'
  fed | awk {program}
}}
# Every folder of the job that is new or has changed (N), is not there any more (G), and how many
# there are (C).
listing() {{
  {{
    printf '%s\n' "$k_known"
    echo {mark}
    printf './%s\0' "$@" | xargs -0 -n 2000 stat -c '%Y %i %y %F/%n' -- 2>/dev/null
  }} | awk -v since="$k_since" '
    $0 == "{mark}" {{ here = 1; next }}
    !here {{
      if (NF > 2) {{ name = $0; sub(/^[0-9]+ [0-9.]+ /, "", name); has[name] = $1 " " $2 }}
      next
    }}
    # time, inode, date, time with its fraction, zone, kind/name
    !/^[0-9]+ [0-9]+ [0-9-]+ [0-9:.]+ [0-9+-]+ directory\/\.\// {{ next }}
    {{
      name = $0
      sub(/^[0-9]+ [0-9]+ [0-9-]+ [0-9:.]+ [0-9+-]+ directory\/\.\//, "", name)
      fraction = $4
      if (!sub(/^[^.]*\./, "", fraction)) fraction = 0
      key = $1 " " $2 "." fraction
      if (name ~ /^(_retry_.*|lost\+found|task_chunks|\..*)$/) next
      count++
      if (name in has) {{
        same = (has[name] == key)
        delete has[name]
        if (same) next
      }} else if ($1 + 0 < since + 0) next
      print "N " key " " name
    }}
    END {{ for (name in has) print "G " name; print "C " count + 0 }}'
}}
# Of the new ones: those with a result that is read now (R, with its time and size), those that
# wait for the next look (L), those without a result (O).
planned() {{
  {{
    printf '%s\n' "$listed" | sed -n 's/^N [0-9]* [0-9.]* \(.*\)$/.\/\1\/result.json/p' |
      tr '\n' '\0' | xargs -0 -n 2000 stat -c '%Y %s %F/%n' -- 2>/dev/null
    echo {mark}
    printf '%s\n' "$listed"
  }} | awk -v files="$files" -v bytes="$bytes" '
    $0 == "{mark}" {{ planning = 1; next }}
    !planning {{
      if ($0 !~ /^[0-9]+ [0-9]+ regular( empty)? file\/\.\//) next
      name = $0
      sub(/^[0-9]+ [0-9]+ regular( empty)? file\/\.\//, "", name)
      sub(/\/result\.json$/, "", name)
      has[name] = $1 " " $2
      size[name] = $2
      next
    }}
    $1 != "N" {{ next }}
    {{
      name = $0
      sub(/^N [0-9]+ [0-9.]+ /, "", name)
      if (!(name in has)) {{ print "O " $2 " " $3 " " name; next }}
      if (files < 1 || (bytes < size[name] && used)) {{ print "L " name; next }}
      files--; bytes -= size[name]; used = 1
      print "R " $2 " " $3 " " has[name] " " name
    }}'
}}
fed() {{
  if [ -n "$root" ]; then
    echo '{mark} root .'
    tr ',' '\n' <result.json 2>/dev/null
    echo
  fi
  printf '%s\n' "$plan" | while IFS=' ' read -r kind mtime stamp at size name; do
    [ "$kind" = R ] || continue
    printf '%s trial %s %s %s %s\n' {mark} "$mtime" "$stamp" "$at" "$name"
    tr ',' '\n' <"./$name/result.json" 2>/dev/null
    echo
    [ -n "$k_turns" ] || continue
    if [ -f "./$name/agent/trajectory.json" ]; then
      printf '%s steps %s\n' {mark} "$name"
      head -c {each_bytes} -- "./$name/agent/trajectory.json" 2>/dev/null | tr ',' '\n'
      echo
    else
      set -- "./$name"/agent/episode-*
      if [ -e "$1" ]; then printf '%s episodes %s %s\n' {mark} $# "$name"; fi
    fi
  done
}}
"""
_EACH_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class TreeLook:
    """One tree to look at, the first of `paths` that is there, and what is known of its jobs."""

    paths: Sequence[str]
    jobs: Mapping[str, Known]


def tree_script(
    mark: str, looks: Sequence[TreeLook], limits: TreeLimits, *, timeout_s: float
) -> bytes:
    """The script for all trees. It may stand behind another one: it sets only names that begin
    with `trees_`, and ends without leaving.
    """
    code = _CODE.format(
        mark=mark,
        jobs=limits.jobs,
        entries=limits.entries,
        each_bytes=_EACH_BYTES,
        program=shlex.quote(program(mark)),
    )
    share = max(1, len(looks))
    room = f"{max(20, limits.files // share)} {max(1 << 20, limits.read_bytes // share)}"
    lines = [
        f"trees_code={shlex.quote(code)}",
        f"trees_stop=$(($(date +%s) + {max(1, int(timeout_s) - limits.each_s)}))",
        f'trees_limit="timeout -k 1 {limits.each_s}"',
        "command -v timeout >/dev/null 2>&1 || trees_limit=",
    ]
    for index, look in enumerate(looks):
        lines += [
            f"printf '%s tree %s\\n' {mark} {index}",
            'if [ "$(date +%s)" -ge "$trees_stop" ]; then',
            f"  printf '%s late\\n' {mark}",
            "else",
            "  {",
            "    printf '%s\\n' \"$trees_code\"",
            f"    cat <<'{mark}e'",
            _knows(look.jobs),
            f"tree {room} {shlex.join(look.paths)} </dev/null",
            f"{mark}e",
            "  } | $trees_limit /bin/sh -s 2>/dev/null",
            "fi",
            f"printf '\\n%s end %s\\n' {mark} {index}",
        ]
    return ("\n".join(lines) + "\n").encode()


def _knows(jobs: Mapping[str, Known]) -> str:
    """A function that sets what is known of one job."""
    cases = [
        f"{shlex.quote(path)})\nk_since={known.watermark} k_key={shlex.quote(known.key)} "
        f"k_turns={'1' if known.turns else ''}\nk_known={shlex.quote(_lines(known))} ;;"
        for path, known in jobs.items()
    ]
    body = "\n".join(["k_since=0 k_key= k_turns= k_known=", "case $1 in", *cases, "esac"])
    return f"knows() {{\n{body}\n}}"


def _lines(known: Known) -> str:
    return "\n".join(f"{mtime} {stamp} {name}" for mtime, stamp, name in known.entries)
