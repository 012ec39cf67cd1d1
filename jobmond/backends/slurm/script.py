"""The two scripts a sweep sends, and taking their answers apart. Pure: the nonce is handed in."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# Anything a login shell may set that changes what is listed or how it is printed.
_UNSET = (
    "SQUEUE_ACCOUNT SQUEUE_ALL SQUEUE_ARRAY SQUEUE_ARRAY_UNIQUE SQUEUE_NAMES SQUEUE_FEDERATION "
    "SQUEUE_FORMAT SQUEUE_FORMAT2 SQUEUE_LICENSES SQUEUE_LOCAL SQUEUE_PARTITION SQUEUE_PRIORITY "
    "SQUEUE_QOS SQUEUE_SIBLING SQUEUE_SORT SQUEUE_STATES SQUEUE_USERS SQUEUE_ONLY_JOB_STATE "
    "SQUEUE_JSON SQUEUE_YAML SQUEUE_EXPAND_PATTERNS "
    "SACCT_FORMAT SACCT_FEDERATION SACCT_LOCAL "
    "SCANCEL_ACCOUNT SCANCEL_BATCH SCANCEL_CTLD SCANCEL_CRON SCANCEL_FULL SCANCEL_HURRY "
    "SCANCEL_INTERACTIVE SCANCEL_NAME SCANCEL_PARTITION SCANCEL_QOS SCANCEL_STATE SCANCEL_USER "
    "SCANCEL_WCKEY SCANCEL_VERBOSE "
    "SCONTROL_ALL SCONTROL_FEDERATION SCONTROL_FUTURE SCONTROL_LOCAL SCONTROL_SIBLING "
    "SLURM_CLUSTERS SLURM_DEBUG_FLAGS SLURM_JSON SLURM_YAML SLURM_TOPO_LEN"
)

# Sites that put Slurm on PATH in a login profile only, which a script never reads.
ELSEWHERE = "/opt/slurm/bin:/usr/local/slurm/bin:/cm/shared/apps/slurm/current/bin"

# `ask NAME COMMAND…` frames a command's output, exit status and error text. The frame's mark is
# random, so no job name can look like one.
_PRELUDE = """\
unset {unset}
LC_ALL=C TZ=UTC SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0 PATH={path}
export LC_ALL TZ SLURM_TIME_FORMAT SLURM_BITSTR_LEN PATH
command -v timeout >/dev/null 2>&1 || timeout() {{ shift 3; "$@"; }}
ask() {{
  ask_name=$1
  shift
  printf '\\n%s begin %s\\n' {mark} "$ask_name"
  exec 3>&1
  ask_err=$("$@" 2>&1 >&3 3>&-)
  ask_rc=$?
  exec 3>&-
  printf '\\n%s end %s %s\\n%.4000s\\n%s done %s\\n' \\
    {mark} "$ask_name" "$ask_rc" "$ask_err" {mark} "$ask_name"
}}
"""

# A squeue that fails leaves nothing to compare accounting with: the database is then left alone.
_LISTING = """\
ask who id -un
{users}
[ -n "$jobmond_users" ] || exit 0
ask squeue timeout -k 2 {squeue_s} squeue -h -t all -u "$jobmond_users" -o {format}
[ "$ask_rc" = 0 ] || exit 0
{sacct}
exit 0
"""

# With one user squeue asks slurmctld for that user's jobs; with two, be they the same, for all
# jobs of the cluster.
_OTHERS = """\
for jobmond_one in {others}; do
  [ "$jobmond_one" = "$jobmond_own" ] || jobmond_users=$jobmond_users,$jobmond_one
done"""

_SACCT = (
    "ask sacct timeout -k 2 {sacct_s} sacct -X -D -n -p --delimiter={delimiter} -o {fields} {which}"
)

# After the first call that slurmctld does not answer, the others would only wait as long.
_DETAILS = """\
for jobmond_id in {ids}; do
  ask "$jobmond_id" timeout -k 2 {each_s} scontrol show job -o "$jobmond_id"
  [ "$ask_rc" = 0 ] || case $ask_err in
    *'Invalid job id'*|*'not found'*) ;;
    '') ;;
    *) exit 0 ;;
  esac
  [ "$ask_rc" != 124 ] || exit 0
done
exit 0
"""

# The order is that of queue.parse(); the name comes last.
SQUEUE_FIELDS = "iFKATrEVSeMlNPauZokj"
SACCT_FIELDS = (
    "JobID",
    "JobIDRaw",
    "State",
    "ExitCode",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "TimelimitRaw",
    "NodeList",
    "User",
    "Partition",
    "Account",
    "WorkDir",
    "JobName",
)
# Without -s a window hides jobs that were cancelled before they were ever eligible.
_EVERY_STATE = "BF,CA,CD,DL,F,NF,OOM,PD,PR,R,RQ,RS,RV,S,TO"
SUBMIT_LINE = (
    "SubmitLine"  # accounting before 21.08 has no such field and refuses the whole question
)


@dataclass(frozen=True, slots=True)
class Nonce:
    """Random words of one sweep that no job can know: between fields, and around answers."""

    field: str
    frame: str

    @classmethod
    def of(cls, token: str) -> "Nonce":
        """From at least 32 hexadecimal digits."""
        half = len(token) // 2
        return cls(token[:half], token[half:])


@dataclass(frozen=True, slots=True)
class Section:
    """What one command printed, said on standard error, and returned."""

    rc: int
    out: bytes
    err: bytes


@dataclass(frozen=True, slots=True)
class Window:
    """Accounting is asked for everything of the configured users since an instant."""

    since: datetime


@dataclass(frozen=True, slots=True)
class Named:
    """Accounting is asked for these master ids, of any user and age."""

    ids: tuple[str, ...]


def listing(
    nonce: Nonce,
    *,
    users: Sequence[str],
    others: Sequence[str],
    accounting: Window | Named | None,
    submit_line: bool,
    squeue_s: int,
    sacct_s: int,
    bin_dir: str | None,
) -> bytes:
    """One squeue and at most one sacct.

    `users` empty asks for the login user. `others` are owners of tracked jobs beside them.
    """
    own = shlex.quote(",".join(users)) if users else '"$(id -un)"'
    extra = _OTHERS.format(others=shlex.join(others)) if others else ""
    shape = f"{nonce.field}<" + f"{nonce.field};".join(f"%{letter}" for letter in SQUEUE_FIELDS)
    script = prelude(nonce, bin_dir) + _LISTING.format(
        users=f"jobmond_own={own}\njobmond_users=$jobmond_own\n{extra}",
        squeue_s=squeue_s,
        format=shlex.quote(f"{shape}{nonce.field}>"),
        sacct=_sacct(nonce, accounting, submit_line=submit_line, sacct_s=sacct_s),
    )
    return script.encode()


def _sacct(
    nonce: Nonce, accounting: Window | Named | None, *, submit_line: bool, sacct_s: int
) -> str:
    if accounting is None or (isinstance(accounting, Named) and not accounting.ids):
        return ":"  # `sacct -j ''` would list everything
    if isinstance(accounting, Named):
        which = f"-j {shlex.quote(','.join(accounting.ids))}"
    else:
        since = (accounting.since.astimezone(UTC) - timedelta(minutes=10)).replace(microsecond=0)
        start = since.strftime("%Y-%m-%dT%H:%M:%S")
        which = f'-u "$jobmond_own" -S {start} -E now -s {_EVERY_STATE}'
    fields = (*SACCT_FIELDS, SUBMIT_LINE) if submit_line else SACCT_FIELDS
    return _SACCT.format(
        sacct_s=sacct_s, delimiter=nonce.field, fields=",".join(fields), which=which
    )


def details(nonce: Nonce, ids: Sequence[str], *, each_s: int, bin_dir: str | None) -> bytes:
    """One scontrol for each id, until slurmctld fails to answer one."""
    quoted = " ".join(shlex.quote(one) for one in ids)
    return (prelude(nonce, bin_dir) + _DETAILS.format(ids=quoted, each_s=each_s)).encode()


def prelude(nonce: Nonce, bin_dir: str | None) -> str:
    """What every script begins with: its environment, and `ask`."""
    first = f"{shlex.quote(bin_dir)}:" if bin_dir else ""
    path = f'{first}"$PATH":{ELSEWHERE}'
    return _PRELUDE.format(unset=_UNSET, path=path, mark=nonce.frame)


_NAME = re.compile(rb"[A-Za-z0-9_+]+")


def sections(stdout: bytes, nonce: Nonce) -> Mapping[str, Section]:
    """The answers that arrived whole, by name. One that is cut short is left out."""
    return dict(_sections(stdout, nonce.frame.encode()))


def _sections(stdout: bytes, mark: bytes) -> Iterator[tuple[str, Section]]:
    at = 0
    while True:
        opened = stdout.find(b"\n%b begin " % mark, at)
        if opened < 0:
            return
        start = opened + len(mark) + 8
        line_end = stdout.find(b"\n", start)
        name = stdout[start:line_end]
        if line_end < 0 or not _NAME.fullmatch(name):
            return
        closed = stdout.find(b"\n%b end %b " % (mark, name), line_end)
        rc_at = closed + len(mark) + len(name) + 7
        rc_end = stdout.find(b"\n", rc_at)
        done = stdout.find(b"\n%b done %b\n" % (mark, name), max(rc_end, 0))
        if closed < 0 or rc_end < 0 or done < 0:
            return
        rc = stdout[rc_at:rc_end]
        if not rc.isdigit() or len(rc) > 3:
            return
        # An empty answer has its two newlines in one.
        out = stdout[line_end + 1 : max(closed, line_end + 1)]
        yield name.decode(), Section(int(rc), out, stdout[rc_end + 1 : done])
        at = done
