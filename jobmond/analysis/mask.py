r"""Secrets in text replaced by `****`.

Every expression here runs in linear time on any input: it either begins with a fixed word and
looks a bounded distance ahead, or it takes all that it looked at. Keep it so: no unbounded
repetition may be followed by something that can fail.
"""

import re

MASK = "****"
# A secret glued to another can come to light once that one is gone: look again until none does.
_PASSES = 8

# Shapes that are secrets wherever they stand. `\\[nrt]` before a shape is a newline in quoted text.
_EDGE = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
_REST = r"[A-Za-z0-9_-]*+"  # whatever is glued to it goes too, so that nothing new begins there


def _shape(start: str, body: str) -> tuple[str, re.Pattern[str]]:
    return start, re.compile(rf"({re.escape(start)}){body}{_REST}")


def _edged(start: str, body: str) -> tuple[str, re.Pattern[str]]:
    """For starts that ordinary words end in."""
    return start, re.compile(rf"{_EDGE}({re.escape(start)}){body}{_REST}")


# How each begins, and the whole: the search for a fixed word is what makes this fast.
_TOKENS: tuple[tuple[str, re.Pattern[str]], ...] = (
    _shape("hf_", r"[A-Za-z0-9]{20,}"),  # Hugging Face
    _shape("api_org_", r"[A-Za-z0-9]{20,}"),
    *(_shape(f"gh{kind}_", r"[A-Za-z0-9]{20,}") for kind in "pousr"),  # GitHub
    _shape("github_pat_", r"[A-Za-z0-9_]{20,}"),
    *(  # GitLab
        _shape(f"gl{kind}-", r"[A-Za-z0-9_.-]{16,}")
        for kind in ("pat", "rt", "dt", "ptt", "soat", "cbt", "ft")
    ),
    _edged("sk-", r"(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9_-]{16,}"),  # OpenAI and its like
    _edged("pk-lf-", r"[A-Za-z0-9_-]{16,}"),
    _edged("AKIA", r"[0-9A-Z]{16}"),  # AWS
    _edged("ASIA", r"[0-9A-Z]{16}"),
    _edged("ABIA", r"[0-9A-Z]{16}"),
    _shape("AIza", r"[0-9A-Za-z_-]{30,}"),  # Google
    _edged("ya29.", r"[A-Za-z0-9_-]{16,}"),
    _edged("GOCSPX-", r"[A-Za-z0-9_-]{16,}"),
    *(_edged(f"xox{kind}-", r"[A-Za-z0-9-]{10,}") for kind in "abeoprs"),  # Slack
    _edged("xapp-", r"[A-Za-z0-9-]{10,}"),
    *(
        _shape(f"hooks.slack.com/{kind}/", r"[A-Za-z0-9/_-]{8,}")
        for kind in ("services", "workflows", "triggers")
    ),
    _shape("discord.com/api/webhooks/", r"[A-Za-z0-9/_-]{8,}"),
    _shape("discordapp.com/api/webhooks/", r"[A-Za-z0-9/_-]{8,}"),
    _shape("webhook.office.com/", r"[A-Za-z0-9/@_-]{8,}"),
    _shape("nvapi-", r"[A-Za-z0-9_-]{16,}"),  # NVIDIA
    _edged("wandb_v1_", r"[A-Za-z0-9_]{16,}"),
    *(
        _edged(start, r"[A-Za-z0-9_-]{20,}")
        for start in ("dckr_pat_", "dckr_oat_", "pypi-", "npm_")
    ),
    *(  # model hosts
        _edged(start, r"[A-Za-z0-9_-]{24,}")
        for start in ("gsk_", "tgp_v1_", "fw_", "r8_", "rpa_", "xai-", "pplx-")
    ),
    *(
        _edged(start, r"[A-Za-z0-9_]{24,}")
        for start in ("dtn_", "e2b_", "dop_v1_", "lsv2_pt_", "lsv2_sk_")
    ),
    *(  # services that trainers and their scripts talk to
        _edged(start, r"[A-Za-z0-9_-]{20,}")
        for start in (
            "sk_live_",
            "sk_test_",
            "rk_live_",
            "rk_test_",
            "pk_live_",
            "whsec_",
            "shpat_",
            "shpss_",
            "sq0csp-",
            "sq0atp-",
            "lin_api_",
            "ntn_",
            "figd_",
            "CFPAT-",
            "PMAK-",
            "dp.pt.",
            "EAACEd",
        )
    ),
    *(_edged(start, r"(?=[A-Za-z_-]{0,64}[0-9])[A-Za-z0-9]{20,}") for start in ("ak-", "as-")),
    _edged("secret_", r"(?=[A-Za-z_]{0,64}[0-9])[A-Za-z0-9_]{32,}(?:\.[A-Za-z0-9]*+)?"),
    _edged("key-", r"[0-9a-f]{32}"),  # Mailgun
    _edged("SG.", r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),  # SendGrid
    _edged("1//0", r"[A-Za-z0-9_-]{20,}"),  # Google, refresh tokens
    _edged("dapi", r"[0-9a-f]{32}"),  # Databricks
    _edged("hvs.", r"[A-Za-z0-9]{24,}"),  # Vault
    _shape("AGE-SECRET-KEY-1", r"[0-9A-Z]{20,}"),
    # A JSON web token, or any other base64 that begins with `{"`.
    _edged("eyJ", r"[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*+){0,4}"),
)

# A value, once its name has been read: quoted (also inside quoted text), or up to a blank.
_QUOTED = r""""(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?"""
_VALUE = (
    r"(?P<value>"
    r"""\\"(?:[^"\\\n]|\\(?!["\n]))*+(?:\\")?|\\'(?:[^'\\\n]|\\(?!['\n]))*+(?:\\')?|"""
    r"""(?:\$|[bBuUrRfF]{1,2})?(?:""" + _QUOTED + r")"
    r"""(?:\\['"]|""" + _QUOTED + r"|[A-Za-z0-9_./+=-])*+|"
    r"""[^\s"'&]++)"""
)
_NAMES = (
    r"pass(?:word|wd|phrase|code)|secret(?:[_-]?(?:access[_-]?)?key)?|"
    r"(?:api|access|private|auth|account|shared|signing|encryption|master)[_ -]?"
    r"(?:access[_-]?)?key(?:[_-]?id)?(?: provided)?|(?<=_)pwd|subscription[_-]?key"
)
_KEYED = re.compile(
    rf"(?P<key>(?i:{_NAMES}|token))"
    r"""(?P<sep>(?:\\?["'`])?\]?[ \t]{0,4}(?::=|=>|[:=])[ \t]{0,4})""" + _VALUE
)
_OPTION = re.compile(
    rf"(?P<head>(?<![\w-])--?[\w.-]{{0,60}}?(?P<key>(?i:{_NAMES}|token)))"
    r"""(?P<sep>["']?,?[ \t]{1,8})(?!-)""" + _VALUE
)
_HEADER = re.compile(
    r"""(?P<head>(?i:authorization)\\?["']?[ \t]{0,4}[:=][ \t]{0,4}(?:\\?["'])?"""
    r"""(?:(?i:bearer|basic|token|digest|negotiate|apikey)[ \t]{1,4})?)[^\s"',\\]++"""
)
_BEARER = re.compile(r"(?P<head>(?i:bearer)[ \t]{1,4})(?=\S{0,64}[0-9])[A-Za-z0-9._~+/=-]{8,}+")
_COOKIE = re.compile(r"""(?P<head>(?i:cookie)["']?[ \t]{0,4}:[ \t]{0,4}["']?)[^"'\n]++""")
_URL_NAMES = re.compile(r"(?P<head>://[^\s/@:'\"]{0,256}:)[^\s/'\"]{1,256}(?P<tail>@)")
_URL_TOKEN = re.compile(r"(?P<head>://)[^\s/@:'\"]{20,256}(?P<tail>@)")
_QUERY = re.compile(
    r"(?P<head>[?&](?i:sig|signature|key|auth|code|x-(?:amz|goog)-"
    r"(?:signature|credential|security-token))=)[^&\s\"'<>]{6,}+"
)
_WANDB = re.compile(
    r"(?P<head>(?i:wandb)[^\n]{0,80}?(?i:key|login)[^\n]{0,80}?(?<![0-9A-Za-z]))"
    r"(?:local-)?[0-9a-f]{40}(?![0-9A-Za-z])"
)
_NETRC = re.compile(r"(?P<head>login[ \t]{1,8}\S{1,200}[ \t]{1,8}password[ \t]{1,8})\S++")
_COMMAND = re.compile(
    r"(?P<head>(?:sshpass|(?:docker|podman|nerdctl|helm)[^\n]{0,20} login)[^\n]{0,120}? -p ?)\S++"
)
# `mysql -pX` and its like take the password without a blank, others with one.
_DATABASE = re.compile(r"(?P<head>(?:mysql|maria)[a-z_-]{0,20} (?:[^\n]{0,200}? )??-p)(?=\S)\S++")
_CACHE = re.compile(
    r"(?P<head>(?:redis-cli|ldap[a-z]{1,12}) (?:[^\n]{0,200}? )??-[aw] ?)(?=\S)\S++"
)
# `passwd hunter2`: in a sentence the next word is one without a digit.
_SPOKEN = re.compile(
    r"(?P<head>(?<![\w/.-])(?i:pass(?:word|wd|phrase|code))[ \t]{1,4})"
    r"(?=[^\s\d]{0,64}\d)(?=[\d.]{0,64}[^\s\d.])[^\s\"',;)]{4,}+"
)
_CURL = re.compile(r"(?P<head>curl[^\n]{0,200}? (?:-u|--user)[ =]?[^\s:]{0,100}:)[^\s\"']++")
# `DB_PASS=x`, `Pwd=x`: what counts passes or names a directory has the same names.
_PASS = re.compile(
    r"(?P<head>(?:(?i:(?<=_)pass|(?<![a-z_])pwd)|(?<=SSH)PASS|(?<=MYSQL)PASS)"
    r"""["']?[ \t]{0,2}[:=][ \t]{0,2}["']?)(?![\d./~$%<*-])(?!(?i:true|false|none|null|yes|no)\b)"""
    r"""[^\s"',;)}&]++"""
)
# Any variable whose name ends in KEY, with a value that no person would choose.
_VARIABLE = re.compile(
    r"""(?P<head>(?<![A-Za-z0-9])[A-Z][A-Z0-9_]{0,60}_KEY["']?[ \t]{0,2}[:=][ \t]{0,2}["']?)"""
    r"(?=[A-Za-z_+/=-]{0,64}\d)(?=[\d_+/=-]{0,64}[A-Za-z])[A-Za-z0-9_+/=-]{20,}+"
)
# A name and its value without a sign between them.
_SET = re.compile(
    r"(?P<head>(?<![\w-])(?:setenv|ENV|configure set)[ \t]{1,4}"
    r"\w{0,60}(?i:token|secret|password|_key)[ \t]{1,4})(?=\S)\S++"
)
_NAMED = re.compile(
    r"(?P<head>(?<![\w-])(?i:api ?key|access token|auth token)[ \t]{1,2})"
    r"(?=[A-Za-z_-]{0,64}\d)(?=[\d_-]{0,64}[A-Za-z])[A-Za-z0-9_-]{16,}+"
)
# What is handed to a program that asks for it.
_PIPED = re.compile(
    r"""(?P<head>(?<![\w-])(?:echo|printf)(?: -n)?[ \t]{1,4})[^\s|]{1,200}+"""
    r"(?=[ \t]{0,4}\|[^|\n]{0,80}(?:-stdin|sudo -S|chpasswd|with-token))"
)
_HERE = re.compile(
    r"(?P<head>(?<![\w-])(?:chpasswd|sudo -S|su|passwd|[^\s\n]{1,40} login|with-token|config set)"
    r"[^\n]{0,60}?<<<[ \t]{0,4})(?=\S)\S++"
)
_ARCHIVE = re.compile(r"(?P<head>(?<![\w-])(?:un)?zip [^\n]{0,80}?-P ?)(?=\S)\S++")
_SEVEN = re.compile(r"(?P<head>(?<![\w-])7z[a-z]? [^\n]{0,120}? -p)(?=\S)\S++")
_PASS_WORD = re.compile(r"(?P<head>-pass(?:in|out)?[ \t]{1,4}pass:)(?=\S)\S++")
_SHARE = re.compile(
    r"(?P<head>(?<![\w-])(?:smbclient|mount\.cifs) [^\n]{0,120}?-U [^\s%]{1,60}%)\S++"
)
_MONGO = re.compile(r"(?P<head>(?<![\w-])mongo[a-z]{0,10} [^\n]{0,120}?-p )(?=[^\s-])\S++")
_LOGIN = re.compile(r"(?P<head>--auth[ =][A-Za-z][^\s:]{0,60}:)(?=\S)\S++")
_BOT = re.compile(r"(?P<head>(?<![A-Za-z0-9])(?:bot)?\d{8,10}:)AA[A-Za-z0-9_-]{30,}+")
# Words of which one has to be there, so that most text is not searched.
_SPECIAL = (
    (("mysql", "maria"), _DATABASE),
    (("redis-cli", "ldap"), _CACHE),
    (("pass", "PASS", "Pass"), _SPOKEN),
    (("pass", "PASS", "pwd", "Pwd", "PWD"), _PASS),
    (("_KEY",), _VARIABLE),
    (("setenv", "ENV", "configure set"), _SET),
    (("oken ", "ey ", "OKEN ", "EY "), _NAMED),
    (("-stdin", "sudo -S", "chpasswd", "with-token"), _PIPED),
    (("<<<",), _HERE),
    (("zip ",), _ARCHIVE),
    (("7z",), _SEVEN),
    (("pass:",), _PASS_WORD),
    (("smbclient", "mount.cifs"), _SHARE),
    (("mongo",), _MONGO),
    (("--auth",), _LOGIN),
    ((":AA",), _BOT),
)

_KEY_BLOCK = re.compile(
    r"(?P<begin>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)"
    r"""(?P<body>(?:[A-Za-z0-9+/=\s\\"',:|]|-(?!----))*+)"""
)
_KEY_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_TAIL = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{16,100}$")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{1,100}\s?")
_KEY_LINES = 120  # a key of 8,192 bits has 100 lines

_OPENING = re.compile(r"""(?:\$|[bBuUrRfF]{1,2})?(?P<quote>\\?["'])""")
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{0,25})?(?:[eE][-+]?\d{1,3})?(?=[\s,;:)}\]|%]|/(?!/)|$)")
_REFERENCE = re.compile(r"\$\{?[A-Z_][A-Z0-9_]{0,60}\}?[,;)\]}]{0,4}")
_WORDS = frozenset({"none", "null", "true", "false", "nil", "undefined", "unset", ""})


def mask(text: str) -> str:
    """`text` with everything that looks like a credential replaced by `****`.

    Newlines stay where they are, so line numbers survive. Masking twice changes nothing more.
    What names the secret (a prefix, a variable, an option) stays readable.
    """
    for _ in range(_PASSES):
        masked = _pass(text)
        if masked == text:
            break
        text = masked
    return text


def _pass(text: str) -> str:
    text = _KEY_BLOCK.sub(_key_block, text)
    if "PRIVATE KEY" in text:
        text = _headless_keys(_prefixed_keys(text))
    text = _OPTION.sub(_option, text)
    text = _KEYED.sub(_keyed, text)
    for shape in (_HEADER, _BEARER, _COOKIE, _QUERY, _WANDB, _NETRC, _COMMAND, _CURL):
        text = shape.sub(_after_head, text)
    for words, shape in _SPECIAL:
        if any(word in text for word in words):
            text = shape.sub(_after_head, text)
    for shape in (_URL_NAMES, _URL_TOKEN):
        text = shape.sub(lambda m: m["head"] + MASK + m["tail"], text)
    for start, token in _TOKENS:
        if start in text:
            text = token.sub(rf"\g<1>{MASK}", text)
    return text


def _after_head(found: re.Match[str]) -> str:
    return found["head"] + MASK


def _key_block(found: re.Match[str]) -> str:
    lines = found["body"].split("\n")
    return found["begin"] + "\n".join(MASK if line.strip() else line for line in lines)


def _prefixed_keys(text: str) -> str:
    """Masks keys on whose lines somebody put a time or a rank first."""
    lines, left = text.split("\n"), 0
    for number, line in enumerate(lines):
        if _KEY_BEGIN.search(line):
            left = _KEY_LINES
        elif left and _KEY_END.search(line):
            left = 0
        elif left:
            lines[number] = _KEY_TAIL.sub(MASK, line)
            left = left - 1 if lines[number] != line or MASK in line else 0
    return "\n".join(lines)


def _headless_keys(text: str) -> str:
    """Masks the lines above an END whose BEGIN was cut off."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not _KEY_END.search(line):
            continue
        for above in range(number - 1, max(-1, number - _KEY_LINES), -1):
            if not _KEY_LINE.fullmatch(lines[above]):
                break
            lines[above] = MASK
    return "\n".join(lines)


def _option(found: re.Match[str]) -> str:
    if not _is_secret(found["key"], "", found["value"]):
        return found[0]
    return found["head"] + found["sep"] + _masked(found["value"])


def _keyed(found: re.Match[str]) -> str:
    start = found.start()
    before = found.string[max(0, start - 24) : start]
    if not _is_secret(found["key"], before, found["value"]):
        return found[0]
    return found["key"] + found["sep"] + _masked(found["value"])


def _is_secret(key: str, before: str, value: str) -> bool:
    """Whether `value` is one to hide, given the name it stands under.

    Trainers count tokens and name special ones, so `token` alone proves little.
    """
    opened = _OPENING.match(value)
    bare = value[opened.end() :].rstrip("\\\"'") if opened else value
    if bare.rstrip(",;)}]").lower() in _WORDS or _REFERENCE.fullmatch(value):
        return False
    if key.lower() != "token":
        return True
    if _NUMBER.match(bare) or bare[:1] in "</~[(" or bare.startswith("./"):
        return False
    if key.isupper() and before[-1:] in ("_", ""):
        return True
    return len(bare) >= 20 or (len(bare) >= 8 and any(c.isdigit() for c in bare))


def _masked(value: str) -> str:
    """`****` in the quotes `value` had, without the brackets that only happen to follow it."""
    opened = _OPENING.match(value)
    if opened:
        return opened[0] + MASK + opened["quote"]
    kept = len(value) - len(value.rstrip(",;)}]"))
    return MASK + (value[-kept:] if 0 < kept < len(value) else "")
