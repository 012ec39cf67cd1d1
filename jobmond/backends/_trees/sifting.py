"""The members of a JSON file that matter, found at the far side.

A file may hold tens of MB; only what is wanted travels. The files come through `tr ',' '\\n'`,
which makes lines of them: between values a comma is a blank like any other, and inside a string
no line can end, so a line's end there is a comma.
"""

from collections.abc import Iterator

from jobmond.analysis.harbor import JOB_WANTED, TRAJECTORY_WANTED, TRIAL_WANTED
from jobmond.analysis.sifting import Wanted

ROOTS = {"trial": TRIAL_WANTED, "root": JOB_WANTED, "steps": TRAJECTORY_WANTED}

# Every file comes after a line of {mark}, its kind and what is to be said of it. What is said
# goes out again, with the wanted members in one line below, or `-` where the file is not whole.
# Strings in lists come out as 0 (only their number matters), long ones as none.
_PROGRAM = r"""
function want(n, key) {
  if (n == -1) return -1
  if ((n SUBSEP key) in T) return T[n SUBSEP key]
  return ((n SUBSEP "*") in T) ? T[n SUBSEP "*"] : 0
}
function after() { if (depth && kind[depth] == "o") expect[depth] = 1 }
function begin() {
  if (!depth) { if (out != "") bad = 1; below = top; return }
  if (kind[depth] == "a") { out = out (n[depth]++ ? "," : ""); below = node[depth] }
}
function opened(c) {
  begin(); out = out c; depth++
  kind[depth] = (c == "{") ? "o" : "a"
  node[depth] = below; n[depth] = 0; expect[depth] = (c == "{")
  if (depth > 64) bad = 1
}
function closed(c) {
  if (!depth || (kind[depth] == "o") != (c == "}")) { bad = 1; return }
  out = out c; depth--; after()
  if (!depth) done = 1
}
function word(w) { if (!depth) { bad = 1; return } begin(); out = out w " "; after() }
function string(s) {
  if (!depth) { bad = 1; return }
  if (kind[depth] == "o" && expect[depth]) { name = s; expect[depth] = 0; return }
  begin()
  out = out ((kind[depth] == "a") ? "0" : "\"" ((length(s) > 300) ? "" : s) "\""); after()
}
function colon() {
  if (!depth || kind[depth] != "o" || expect[depth]) { bad = 1; return }
  below = want(node[depth], name)
  if (!below) { skip = 1; sdepth = 0; return }
  out = out (n[depth]++ ? "," : "") "\"" name "\":"
}
function ended() { if (!skip) string(str); else if (!sdepth) { skip = 0; after() } }
function structure(p,  c) {
  if (length(p) > 100000) { bad = 1; return }
  while (p != "" && !done && !bad) {
    if (skip && sdepth) {
      if (!match(p, /[][{}]/)) return
      c = substr(p, RSTART, 1); p = substr(p, RSTART + 1)
      sdepth += (c == "[" || c == "{") ? 1 : -1
      if (!sdepth) { skip = 0; after() }
      continue
    }
    if (match(p, /^[ \t\r]+/)) { p = substr(p, RLENGTH + 1); continue }
    c = substr(p, 1, 1)
    if (c ~ /[][{}:]/) p = substr(p, 2)
    else { match(p, /^[^][{}: \t\r]+/); c = substr(p, 1, RLENGTH); p = substr(p, RLENGTH + 1) }
    if (skip) {
      if (c == "[" || c == "{") sdepth = 1
      else if (c ~ /^[]}:]/) bad = 1
      else { skip = 0; after() }
    }
    else if (c == "{" || c == "[") opened(c)
    else if (c == "}" || c == "]") closed(c)
    else if (c == ":") colon()
    else word(c)
  }
}
function said() {
  if (head == "") return
  print mark " " head
  print ((done && !bad && length(out) < 4000000) ? out : "-")
}
index($0, mark " ") == 1 {
  said()
  head = substr($0, length(mark) + 2)
  top = root[substr(head, 1, index(head, " ") - 1)]
  out = str = name = ""; depth = done = bad = skip = sdepth = instr = 0
  next
}
done || bad || (skip && sdepth && !instr && $0 !~ /[]["{}]/) { next }
{
  m = split($0, part, "\"")
  if (!m && instr && !skip) str = str ","  # nothing stands between two commas
  for (i = 1; i <= m && !done && !bad; i++) {
    p = part[i]
    if (!instr) {
      structure(p)
      if (i < m) { instr = 1; str = "" }
      continue
    }
    if (!skip && length(str) < 4000) str = str p
    if (i == m) { str = str ","; continue }
    if (match(p, /\\+$/) && RLENGTH % 2) { str = str "\""; continue }
    instr = 0; ended()
  }
  if (skip && length(str) > 4000) str = ""
}
END { said() }
"""


def program(mark: str) -> str:
    """The awk program, with what is wanted of each kind of file."""
    lines = [f'mark = "{mark}"']
    free = iter(range(1, 1000))
    for kind, wanted in ROOTS.items():
        number = next(free)
        lines.append(f'root["{kind}"] = {number}')
        lines += _trie(number, wanted, free)
    return "BEGIN {\n" + "\n".join(lines) + "\n}" + _PROGRAM


def _trie(node: int, wanted: Wanted, free: Iterator[int]) -> Iterator[str]:
    for name, below in wanted.items():
        number = next(free) if below else -1
        yield f'T[{node} SUBSEP "{name}"] = {number}'
        yield from _trie(number, below, free)
