"""One painted piece of a log line: who says it, how loud, and what."""

import re
from dataclasses import dataclass

_ANSI = re.compile(
    r"\x1b\[[0-?]*+[ -/]*+[@-~]|\x1b\][^\x07\x1b]*+(?:\x07|\x1b\\)?"
    r"|\x1b[()*+][0-9A-Za-z]|\x1b[0-9=>@-Z\\^_a-z]"
)
_LEVELS = "DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL"
# What launchers, Ray, srun, NeMo-Run and Kubernetes put before each line.
_PREFIX = re.compile(
    rf"\[(?!(?:{_LEVELS})\b)[A-Za-z][\w./-]{{0,80}}(?::\d{{1,4}})?\]:? ?"
    r"|\[\d{1,4},\d{1,5}\]<std(?:err|out)>: ?"
    r"|\((?:[\w.:<>+-]{1,80}(?: [\w.:<>+=-]{1,40})? )?"
    r"(?:pid=\d{1,9}|raylet|autoscaler \+\S{1,12}|rank=?\d{1,5})(?:, ip=[\w.:]{1,45})?\) ?"
    r"|\((?:raylet|gcs_server)(?:, ip=[\w.:]{1,45})?\) ?"
    r"|(?:stderr|stdout): ?| {0,4}\d{1,5}: |[A-Za-z_][\w.-]{0,60}/\d{1,3} (?=\S| )"
)
# Stripped as well, but different on every line and so no part of who speaks.
_STAMP = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.,]{0,12}(?:Z|[+-]\d\d:?\d\d) (?:std(?:err|out) [FP] )?"
    rf"|(?P<level>{_LEVELS}) \d\d-\d\d \d\d:\d\d:\d\d \[[\w./-]{{1,80}}:\d{{1,6}}\] ?"
    r"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [A-Z]{2}\d{1,3}){1,4}\] "
    r"|\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\] (?=[A-Z])"
    r"|\[rank\d{1,5}\]:(?=\[[EWIF]\d)"
)
_LEVEL = re.compile(
    rf"(?:^|[\s|\[(:-])(?P<word>{_LEVELS}|debug|info|warning|error|critical)(?=[\s|\]):,-]|$)"
)
_GLOG = re.compile(
    r"^(?:\[rank\d{1,5}\]:)?\[?(?P<letter>[EWIF]) ?(?:\d{3,4} \d\d:\d\d:\d\d|[\w/.]{1,60}\.cpp:\d)"
)
_LETTERS = {"E": "ERROR", "W": "WARNING", "I": "INFO", "F": "FATAL"}
_REPEATED = "[repeated "  # … 7x across cluster]: Ray folded lines that differ in numbers
_QUOTE = re.compile(
    r"\s{0,12}[|>](?:\s|$)|E {3,}|\s{0,8}<<< |>\s{2,}|\+{1,5} |export |declare -x "
    r"|\s{0,8}[│║┃](?! (?:Unrecognized|No such option|Missing|Invalid value))"
)
_HEAD_CHARS = 160  # in which the level of a log record stands


@dataclass(frozen=True, slots=True)
class Saying:
    """`source` is what stands before the text on every line of the same speaker; `text` the rest.

    `level` is that of a log record (upper case), None where it is none. `quoted` says that the
    text repeats something said elsewhere: a transcript, a test's report, a shell's trace.
    `glued` is true where a progress bar stood before the text.
    """

    source: str
    text: str
    level: str | None
    quoted: bool
    glued: bool = False


def saying(raw: bytes) -> Saying:
    """What `raw` (no newline in it) says. Any bytes are accepted; time is linear."""
    whole = raw.replace(b"\0", b"").decode("utf-8", "backslashreplace")
    if "\x1b" in whole:
        whole = _ANSI.sub("", whole)
    whole = whole.rstrip()
    source, level, text = _stripped(whole)
    bar = text.rfind("%|")
    glued = bar >= 0
    if glued:
        end = text.find("]", bar)
        text = text[end + 1 :].lstrip() if end >= 0 else ""
        more, louder, text = _stripped(text)
        source, level = source + more, level or louder
    if _REPEATED in text and "x across cluster]" in text:
        text = text[: text.rindex(_REPEATED)].rstrip()
    return Saying(source, text, level or level_of(text), _QUOTE.match(text) is not None, glued)


def level_of(text: str) -> str | None:
    """The level of a log record that begins `text`; None where it does not look like one."""
    glog = _GLOG.match(text)
    if glog:
        return _LETTERS[glog["letter"]]
    head = text[:_HEAD_CHARS]
    found = _LEVEL.search(head)
    if found is None:
        return None
    before, word = head[: found.start("word")], found["word"]
    stamped = any(c.isdigit() for c in before) or before.strip(" [(|") == ""
    # `error` in a sentence is no level; in brackets or after a time it is.
    if not stamped or (word.islower() and "[" not in before):
        return None
    return "WARNING" if word.upper() == "WARN" else word.upper()


def _stripped(text: str) -> tuple[str, str | None, str]:
    source, level = [], None
    for _ in range(8):
        found = _STAMP.match(text)
        if found:
            level = found["level"] or level
            text = text[found.end() :]
            continue
        found = _PREFIX.match(text)
        if not found:
            break
        source.append(found[0].strip())
        text = text[found.end() :]
    return " ".join(source), level, text
