r"""The logs of a job that ended badly, in parts: the script's part that brings them, and its answer
read.

The far side chooses around which lines to look, because nobody may ask it twice: of the lines that
hold a needle those of rare kinds come first. A kind is a line without its numbers; what comes in
thousands is expected, what comes once is news.
"""

import re
import shlex
from dataclasses import dataclass

from jobmond.analysis.visible import readable
from jobmond.model.observation import Examine, Examined, LogPart

_FILES = 8  # logs of one job that are looked at

# `examine INDEX NEEDLES WHOLE HEAD TAIL AROUND HITS [PATH…]` goes after `look`, which has left the
# log's path in `seen`. Numbers of lines are counted in one pass, in pieces; a piece that came short
# is no count. awk gets offsets and the beginnings of lines, and begins with where
# the search ended and how many lines it found.
SCRIPT = """\
numbered=no
if [ "$(printf 'b\\ra' | tr '\\r' '\\n' | grep -abF a 2>/dev/null)" = 2:a ]; then numbered=yes; fi
cut_out() {{
  timeout -k 1 {each_s} tail -c "+$(($1 + 1))" -- "$x_path" 2>/dev/null | head -c "$2"
}}
newlines() {{
  set -- "$2" $(cut_out "$1" "$2" | wc -lc)
  if [ "$3" = "$1" ]; then echo "$2"; fi
}}
spots() {{
  {{ cut_out "$1" "$2"; printf '\\n%s\\n' {close}; }} | tr '\\r' '\\n' |
    grep -abF -e "$x_needles" -e {close} | cut -b 1-200 | awk -v most="$x_hits" '
  {{
    colon = index($0, ":"); at = substr($0, 1, colon - 1); kind = substr($0, colon + 1)
    if (kind == "{close}") {{ end = at; next }}
    gsub(/[0-9]+/, "", kind)
    last[count++ % 8] = at
    if (kind in number) {{ number[kind]++; final[kind] = at }}
    else if (kinds < 400) {{ names[kinds++] = kind; number[kind] = 1; first[kind] = at }}
  }}
  function pick(at) {{
    if (picked < most && !(at in taken)) {{ taken[at] = 1; picks[picked++] = at }}
  }}
  END {{
    for (i = 1; i < kinds; i++) {{
      name = names[i]
      for (j = i; j > 0 && number[names[j - 1]] > number[name]; j--) names[j] = names[j - 1]
      names[j] = name
    }}
    for (i = 0; i < kinds; i++) {{
      if (picked >= most * 0.8) for (j in last) pick(last[j])
      pick(first[names[i]])
      if (names[i] in final) pick(final[names[i]])
    }}
    for (j in last) pick(last[j])
    print end + 0, count + 0
    for (i = 1; i < picked; i++) {{
      at = picks[i]
      for (j = i; j > 0 && picks[j - 1] + 0 > at + 0; j--) picks[j] = picks[j - 1]
      picks[j] = at
    }}
    for (i = 0; i < picked; i++) print picks[i]
  }}'
}}
passed_to() {{
  if [ "$1" = "$x_at" ]; then return; fi
  clock
  if [ -n "$x_lines" ] && [ "$now" -lt "$stop" ]; then
    more=$(newlines "$x_at" $(($1 - x_at)))
    x_lines=${{more:+$((x_lines + more))}}
  else
    x_lines=
  fi
  x_at=$1
}}
part() {{
  if [ "$2" -le 0 ]; then return; fi
  passed_to "$1"
  say part "$index" "$1" "$2" "${{x_lines:+$((x_lines + 1))}}"
  cut_out "$1" "$2"
  say end "$index"
  left=$((left - $2))
}}
middle() {{
  x_from=$1 x_to=$2 x_begin='' x_end=$1
  if [ $((x_to - x_from)) -gt "$scan" ]; then x_from=$((x_to - scan)) x_all=0; fi
  if [ "$x_to" -le "$x_from" ] || [ "$numbered" = no ]; then x_all=0; return; fi
  scan=$((scan - (x_to - x_from)))
  set -- $(spots "$x_from" $((x_to - x_from)))
  if [ "${{1-}}" != $((x_to - x_from + 1)) ]; then x_all=0; fi
  x_count=${{2:-0}}
  if [ "$#" -lt 3 ]; then return; fi
  shift 2
  for one; do
    if [ "$one" -ge $((x_to - x_from)) ]; then continue; fi
    x_a=$((x_from + one - x_around)) x_b=$((x_from + one + x_around))
    if [ "$x_a" -lt "$x_end" ]; then x_a=$x_end; fi
    if [ "$x_b" -gt "$x_to" ]; then x_b=$x_to; fi
    if [ "$x_b" -le "$x_a" ]; then continue; fi
    part "$x_a" $((x_b - x_a))
    x_end=$x_b
  done
}}
in_parts() {{
  x_path=$1
  set -- $(timeout -k 1 {each_s} stat -L -c '%s %F' -- "$x_path" 2>/dev/null)
  [ "${{2-}}" = regular ] && [ "$1" -gt 0 ] && [ -r "$x_path" ] || return 0
  x_size=$1 x_at=0 x_lines=0 x_all=1 x_count=0
  clock
  if [ "$left" -lt $((x_most < x_size ? x_most : x_size)) ] || [ "$now" -ge "$stop" ]; then
    x_all=0 x_size=0
  fi
  say exam "$index" "$1"
  printf '%s' "$x_path"
  say data "$index"
  if [ "$x_size" -le "$x_whole" ]; then
    part 0 "$x_size"
  else
    part 0 "$x_head"
    middle "$x_head" $((x_size - x_tail))
    part $((x_size - x_tail)) "$x_tail"
  fi
  say examined "$index" "$x_all" "$x_count"
}}
examine() {{
  index=$1 x_needles=$2 x_whole=$3 x_head=$4 x_tail=$5 x_around=$6 x_hits=$7 x_most=$8
  shift 8
  [ -n "$seen" ] || return 0
  in_parts "$seen"
  x_files=1
  for other; do
    if [ "$other" = "$seen" ] || [ "$x_files" -ge {files} ] || [ ! -s "$other" ]; then continue; fi
    x_files=$((x_files + 1))
    in_parts "$other"
  done
  say over "$index"
}}
"""


def script(close: str, *, each_s: int) -> str:
    """The functions that `look` needs to bring logs in parts."""
    return SCRIPT.format(close=close, each_s=each_s, files=_FILES)


def command(index: int, examine: Examine, needles: str) -> str:
    """The line of the script that goes after the `look` of one ask. `needles` is the variable that
    holds them.
    """
    sizes = (
        examine.whole_bytes,
        examine.head_bytes,
        examine.tail_bytes,
        examine.around_bytes,
        examine.hits,
        examine.most_bytes,
    )
    paths = " ".join(_argument(one) for one in examine.beside)
    return f'examine {index} "${needles}" {" ".join(map(str, sizes))} {paths}'.rstrip()


def _argument(beside: str) -> str:
    if beside.startswith("/"):
        return shlex.quote(beside)
    return '"${seen%/*}"/' + "*".join(map(_literal, beside.split("*")))


def _literal(text: str) -> str:
    return shlex.quote(text) if text else ""


_PART = re.compile(rb"part \d{1,9} (\d{1,20}) (\d{1,20}) ?(\d{0,20})\n")
_OVER = re.compile(rb"examined \d{1,9} ([01]) (\d{1,20})\n")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the script printed of one ask, from its first `exam` on; `lead` begins its lines."""

    stdout: bytes
    lead: bytes
    index: int

    def read(self, at: int) -> tuple[int, tuple[Examined, ...] | None]:
        """The logs in parts, and where the answer ends; None where any of it is missing."""
        found: list[Examined] = []
        exam, over = self._line("exam") + b" ", self._line("over") + b"\n"
        while self.stdout.startswith(exam, at):
            at, one = self._log(at + len(exam))
            if one is None:
                return at, None
            found.append(one)
        whole = self.stdout.startswith(over, at)
        return (at + len(over) - 1, tuple(found)) if whole else (at, None)

    def _log(self, at: int) -> tuple[int, Examined | None]:
        data, end = self._line("data") + b"\n", self._line("end") + b"\n"
        size, _, _ = self.stdout[at : at + 32].partition(b"\n")
        begin = self.stdout.find(data, at)
        if begin < 0 or not size.isdigit():
            return at, None
        path = readable(self.stdout[at + len(size) + 1 : begin])
        at, parts = begin + len(data), []
        while (head := _PART.match(self.stdout, at + len(self.lead))) is not None:
            start, stop = int(head[1]), head.end() + int(head[2])
            if not self.stdout.startswith(end, stop):
                return at, None
            line = int(head[3]) if head[3] else None
            parts.append(LogPart(start, self.stdout[head.end() : stop], line))
            at = stop + len(end)
        said = _OVER.match(self.stdout, at + len(self.lead))
        if said is None:
            return at, None
        known = Examined(path, int(size), tuple(parts), int(said[2]), said[1] == b"1")
        return said.end(), known

    def _line(self, word: str) -> bytes:
        return b"%b%b %d" % (self.lead, word.encode(), self.index)
