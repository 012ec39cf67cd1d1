"""Stand-ins for the far side, for tests of what speaks to it."""

import os
import re
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobmond.ports import Answer

Reply = Answer | Exception | Callable[[bytes], Answer]


class ScriptedTransport:
    """Gives one reply after the other, the last one for ever, and keeps the scripts."""

    logins = 0

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.scripts: list[bytes] = []

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        self.scripts.append(script)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Answer) else reply(script)

    async def close(self) -> None: ...


class ShellTransport:
    """Runs every script with this machine's real `/bin/sh`; `programs` comes first on PATH.

    `user` is somebody else to run them as, which only root can.
    """

    logins = 0

    def __init__(
        self, programs: Path | None = None, *, user: str | None = None, **environment: str
    ) -> None:
        self.user = user
        path = f"{programs}:/usr/bin:/bin" if programs else "/usr/bin:/bin"
        self.environment = {"PATH": path, "HOME": "/nonexistent", **environment}
        self.scripts: list[bytes] = []

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        self.scripts.append(script)
        done = subprocess.run(
            ["/bin/sh", "-c", os.fsdecode(script)] if len(script) < 100_000 else ["/bin/sh", "-s"],
            input=b"" if len(script) < 100_000 else script,
            capture_output=True,
            timeout=timeout_s + 30,
            env={**self.environment, "PWD": os.getcwd()},
            user=self.user,
            extra_groups=[] if self.user else None,
            check=False,
        )
        assert len(done.stdout) <= max_bytes
        return Answer(done.returncode, done.stdout, done.stderr)

    async def close(self) -> None: ...


QUEUE_KEYS = "iFKATrEVSeMlNPauZokj"
ACCOUNT_KEYS = (
    "JobID", "JobIDRaw", "State", "ExitCode", "Submit", "Start", "End", "ElapsedRaw",
    "TimelimitRaw", "NodeList", "User", "Partition", "Account", "WorkDir", "JobName", "SubmitLine",
)  # fmt: skip


def queued(job: str, word: str, **fields: object) -> dict[str, bytes]:
    """A row of squeue, by the letters of its format; `submit`, `name` and the like by name."""
    names = {
        "reason": "r", "dependency": "E", "submit": "V", "start": "S", "end": "e", "elapsed": "M",
        "limit": "l", "nodes": "N", "partition": "P", "account": "a", "user": "u", "workdir": "Z",
        "command": "o", "comment": "k", "name": "j", "raw": "A",
    }  # fmt: skip
    master, _, task = job.partition("_")
    row: dict[str, object] = {
        "i": job, "F": master.partition("+")[0], "K": task.strip("[]") or "N/A",
        "A": master.partition("+")[0], "T": word, "r": "None", "E": "(null)", "V": 1000000,
        "S": 1000010, "e": "N/A", "M": "1:00", "l": "10:00", "N": "n1", "P": "batch", "a": "lab",
        "u": "alice", "Z": "/home/alice", "o": "(null)", "k": "(null)", "j": "train",
    }  # fmt: skip
    row |= {names[key]: value for key, value in fields.items()}
    return {key: _bytes(value) for key, value in row.items()}


def accounted(job: str, word: str, **fields: object) -> dict[str, bytes]:
    """A row of sacct, by field name; `submit`, `end`, `name` and the like in lower case."""
    names = {
        "code": "ExitCode", "submit": "Submit", "start": "Start", "end": "End", "name": "JobName",
        "elapsed": "ElapsedRaw", "limit": "TimelimitRaw", "nodes": "NodeList", "user": "User",
        "line": "SubmitLine", "raw": "JobIDRaw", "workdir": "WorkDir",
    }  # fmt: skip
    row: dict[str, object] = {
        "JobID": job, "JobIDRaw": re.split(r"[_+]", job)[0], "State": word, "ExitCode": "0:0",
        "Submit": 1000000, "Start": 1000010, "End": "Unknown", "ElapsedRaw": 60,
        "TimelimitRaw": 10, "NodeList": "n1", "User": "alice", "Partition": "batch",
        "Account": "lab", "WorkDir": "/home/alice", "JobName": "train", "SubmitLine": "sbatch x",
    }  # fmt: skip
    row |= {names[key]: value for key, value in fields.items()}
    return {key: _bytes(value) for key, value in row.items()}


def record(job: str, word: str, **fields: object) -> bytes:
    """A record of `scontrol show job -o`."""
    pairs: dict[str, object] = {
        "JobId": job, "JobName": "train", "UserId": "alice(1001)", "GroupId": "alice(1001)",
        "MCS_label": "N/A", "JobState": word, "Reason": "None", "Dependency": "(null)",
        "Restarts": 0, "ExitCode": "0:0", "RunTime": "00:01:00", "TimeLimit": "00:10:00",
        "SubmitTime": 1000000, "StartTime": 1000010, "EndTime": 1000610, "Partition": "batch",
        "NodeList": "n1", "Command": "(null)", "WorkDir": "/home/alice", "Comment": "",
        "StdErr": f"/home/alice/slurm-{job}.out", "StdIn": "/dev/null",
        "StdOut": f"/home/alice/slurm-{job}.out", "Power": "",
    }  # fmt: skip
    pairs |= fields
    return b" ".join(key.encode() + b"=" + _bytes(value) for key, value in pairs.items()) + b" \n"


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@dataclass
class FakeSlurm:
    """A cluster that answers the scripts of the SLURM backend without running them.

    `records` maps an id to the output of scontrol; any other id is unknown to it. `failing` maps
    a program to the exit status and the error text it fails with.
    """

    queue: Sequence[Mapping[str, bytes]] = ()
    accounts: Sequence[Mapping[str, bytes]] = ()
    records: Mapping[str, bytes] = field(default_factory=dict)
    failing: Mapping[str, tuple[int, bytes]] = field(default_factory=dict)
    login: str = "alice"
    banner: bytes = b""
    squeue_says: bytes = b""
    logins: int = 0
    scripts: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        text = script.decode()
        self.scripts.append(text)
        mark = re.search(r"begin %s\\n' (\w+)", text)
        assert mark is not None
        frames = self._listing(text) if "ask squeue" in text else self._details(text)
        out = self.banner + b"".join(_framed(mark[1], *frame) for frame in frames)
        return Answer(0, out, b"")

    async def close(self) -> None: ...

    def _listing(self, text: str) -> Iterable[tuple[str, int, bytes, bytes]]:
        yield "who", 0, self.login.encode() + b"\n", b""
        if "squeue" in self.failing:
            yield "squeue", self.failing["squeue"][0], b"", self.failing["squeue"][1]
            return
        word = re.search(r"-o '?(\w+)<", text)
        assert word is not None
        yield "squeue", 0, listing(self.queue, word[1]), self.squeue_says
        if "ask sacct" not in text:
            return
        if "sacct" in self.failing:
            yield "sacct", self.failing["sacct"][0], b"", self.failing["sacct"][1]
            return
        yield "sacct", 0, accounts(self._asked(text), word[1], "SubmitLine" in text), b""

    def _asked(self, text: str) -> list[Mapping[str, bytes]]:
        """What sacct shows: the ids asked for, or else no job that was never eligible."""
        named = re.search(r" -j '?([\w,]+)", text)
        if named is None:
            return [row for row in self.accounts if row["Start"] != b"Unknown"]
        ids = named[1].split(",")
        return [row for row in self.accounts if re.split(rb"[_+]", row["JobID"])[0].decode() in ids]

    def _details(self, text: str) -> Iterable[tuple[str, int, bytes, bytes]]:
        asked = re.search(r"for jobmond_id in (.*); do", text)
        assert asked is not None
        for one in asked[1].replace("'", "").split():
            self.shown.append(one)
            if "scontrol" in self.failing:
                yield one, self.failing["scontrol"][0], b"", self.failing["scontrol"][1]
                return
            if one in self.records:
                yield one, 0, self.records[one], b""
            else:
                yield one, 1, b"", b"slurm_load_jobs error: Invalid job id specified\n"


def listing(rows: Iterable[Mapping[str, bytes]], word: str) -> bytes:
    """squeue's output."""
    mark = word.encode()
    lines = [
        mark + b"<" + (mark + b";").join(row[key] for key in QUEUE_KEYS) + mark + b">"
        for row in rows
    ]
    return b"".join(line + b"\n" for line in lines)


def accounts(rows: Iterable[Mapping[str, bytes]], word: str, submit_line: bool = True) -> bytes:
    """sacct's output."""
    keys = ACCOUNT_KEYS if submit_line else ACCOUNT_KEYS[:-1]
    mark = word.encode()
    return b"".join(b"".join(row[key] + mark for key in keys) + b"\n" for row in rows)


def _framed(mark: str, name: str, rc: int, out: bytes, err: bytes) -> bytes:
    text = f"\n{mark} begin {name}\n".encode() + out + f"\n{mark} end {name} {rc}\n".encode()
    return text + err + f"\n{mark} done {name}\n".encode()


TRANSCRIPT_MARK = b"a1b2c3d4e5f60718293a4b5c6d7e8f90"


class ReplayTransport:
    """Answers with recorded outputs of the scripts, under the random marks of the new ones.

    `listing` and `details` are what the real programs of a real cluster printed.
    """

    logins = 0

    def __init__(self, listing: bytes, details: bytes = b"") -> None:
        self.listing, self.details = listing, details

    async def run(self, script: bytes, *, timeout_s: float, max_bytes: int) -> Answer:
        text = script.decode()
        mark = re.search(r"begin %s\\n' (\w+)", text)
        assert mark is not None
        if "ask squeue" not in text:
            return Answer(0, _marked(self.details, mark[1].encode(), b""), b"")
        word = re.search(r"-o '?(\w+)<", text)
        assert word is not None
        return Answer(0, _marked(self.listing, mark[1].encode(), word[1].encode()), b"")

    async def close(self) -> None: ...


def _marked(recorded: bytes, mark: bytes, word: bytes) -> bytes:
    framed = re.sub(
        rb"\n" + TRANSCRIPT_MARK + rb" (begin|end|done) ",
        lambda match: b"\n" + mark + b" " + match[1] + b" ",
        recorded,
    )
    return framed.replace(TRANSCRIPT_MARK, word)
