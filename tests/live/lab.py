"""The lab as a test sees it: submit, ask, break, count."""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.live import counting, waiting
from tests.live.counting import Call, Counts
from tests.live.machine import Answer, LabError, Machine
from tests.live.options import LabOptions
from tests.live.sshd import HOST
from tests.live.users import User, printing, set_bashrc

__all__ = ["Answer", "Call", "Counts", "Lab", "LabError", "LabOptions", "Submission", "User"]

T = TypeVar("T")
ASKING_S = 0.2  # between two questions about a job: each costs a process and slurmctld's time
TomlValue = str | bool | int | Sequence[str]


@dataclass(frozen=True, slots=True)
class Submission:
    """One batch script and its sbatch options; a script without `#!` is run by /bin/sh."""

    script: str
    options: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.script if self.script.startswith("#!") else f"#!/bin/sh\n{self.script}\n"


class Lab(Machine):
    """A real Slurm cluster behind a real sshd, on loopback, for the length of a `with` block."""

    # -- jobs ----------------------------------------------------------------------------------

    def sbatch(self, user: User, script: str, *options: str) -> str:
        """Submit `script` as `user` from its home; gives the job id.

        Raises LabError when sbatch refuses. No ssh is involved, so nothing is counted.
        """
        text = Submission(script).text
        answer = self.run(["sbatch", "--parsable", *options], user=user, text=text).checked()
        return answer.out.strip().partition(";")[0]

    def sbatch_many(self, user: User, submissions: Sequence[Submission]) -> list[str]:
        """Submit all of them by one shell; gives the ids in the same order."""
        lines = [
            shlex.join(["sbatch", "--parsable", *one.options])
            + f" <<'JOBMOND_END' || exit 1\n{one.text}\nJOBMOND_END"
            for one in submissions
        ]
        answer = self.run(["sh"], user=user, text="\n".join(lines), timeout_s=120).checked()
        return [line.partition(";")[0] for line in answer.out.splitlines()]

    def scancel(self, *arguments: str, user: User | None = None) -> Answer:
        """`scancel`, as root or `user`; raises LabError on a refusal."""
        return self.run(["scancel", *arguments], user=user).checked()

    def scontrol(self, *arguments: str, user: User | None = None) -> Answer:
        """`scontrol`; raises LabError on a refusal."""
        return self.run(["scontrol", *arguments], user=user).checked()

    def squeue(self, *arguments: str, user: User | None = None) -> Answer:
        """`squeue`, raw: look at the exit code yourself."""
        return self.run(["squeue", *arguments], user=user)

    def sacct(self, *arguments: str, user: User | None = None) -> Answer:
        """`sacct`, raw: look at the exit code yourself."""
        return self.run(["sacct", *arguments], user=user)

    def job_state(self, job: str) -> str:
        """State word of squeue, empty once the job is purged; of several tasks the first."""
        words = self.squeue("-h", "-t", "all", "-j", job, "-o", "%T").out.split()
        return words[0] if words else ""

    def accounted(self, job: str) -> tuple[str, str]:
        """State and End of sacct's job line (`FAILED`, `2026-…`), empty without a line."""
        out = self.sacct("-X", "-n", "-P", "-j", job, "--format=State,End").out
        state, _, end = (out.splitlines() or [""])[0].partition("|")
        return state, end

    def wait_for_state(self, job: str, *states: str, timeout_s: float = 60.0) -> str:
        """Wait until squeue gives one of `states` for the job; gives that state.

        Raises TimeoutError.
        """
        what = f"job {job} to be {' or '.join(states)}"
        return waiting.wait_for(
            lambda: state if (state := self.job_state(job)) in states else "",
            timeout_s,
            what=what,
            every_s=ASKING_S,
        )

    def wait_for_accounting(self, job: str, *states: str, timeout_s: float = 60.0) -> str:
        """Wait until sacct gives the job an End and one of `states` (its first word)."""

        def ended() -> str:
            state, end = self.accounted(job)
            word = state.split(" ")[0]
            return word if word in states and end not in {"", "Unknown", "None"} else ""

        return waiting.wait_for(
            ended, timeout_s, what=f"accounting to say {states} of job {job}", every_s=ASKING_S
        )

    def set_slurm(self, **parameters: str | int) -> None:
        """Change lines of slurm.conf (`MinJobAge=2`) and have the daemons read it again."""
        path = self.places.slurm_conf
        lines = [
            line
            for line in path.read_text().splitlines()
            if line.partition("=")[0] not in parameters
        ]
        lines += [f"{name}={value}" for name, value in parameters.items()]
        path.write_text("\n".join(lines) + "\n")
        self.scontrol("reconfigure")

    # -- ssh -----------------------------------------------------------------------------------

    def ssh(self, user: User, command: str, *, text: str = "", timeout_s: float = 60.0) -> Answer:
        """Run `command` through a new OpenSSH connection: one login, one session, all counted."""
        config = str(self.sshd.client_config_file)
        return self.run(["ssh", "-F", config, user.name, command], text=text, timeout_s=timeout_s)

    def restart_sshd(self, *, max_sessions: int | None = None, extra: str | None = None) -> None:
        """End sshd with its sessions and start it with other settings; None keeps a setting.

        `extra` are lines of sshd_config that win over the lab's own.
        """
        if max_sessions is not None:
            self.sshd.max_sessions = max_sessions
        if extra is not None:
            self.sshd.extra = extra
        self.sshd.write_config()
        self.stop("sshd")
        self.start("sshd")

    def change_host_key(self) -> None:
        """Restart sshd with another host key; known_hosts goes on naming the old one."""
        self.sshd.new_host_key()
        self.restart_sshd()

    def trust_host_key(self) -> None:
        """Bring known_hosts up to date with the host key."""
        self.sshd.trust_host_key()

    def banner(self, user: User, *lines: str) -> None:
        """Have the user's ~/.bashrc print `lines` before each ssh command; none: be silent."""
        set_bashrc(user, printing(lines))

    def bashrc(self, user: User, text: str) -> None:
        """Give the user this ~/.bashrc."""
        set_bashrc(user, text)

    # -- faults of single commands -------------------------------------------------------------

    def fault(self, user: User, command: str, script: str) -> None:
        """Have `command` of this user over ssh run `script` (sh) instead; it is counted still."""
        folder = self.places.counting / "faults" / user.name
        folder.mkdir(mode=0o755, exist_ok=True)
        path = folder / command
        new = folder / f".{command}"
        new.write_text(f"#!/bin/sh\n{script}\n")
        new.chmod(0o755)
        new.rename(path)

    def no_faults(self, user: User) -> None:
        """Undo every `fault` of this user."""
        shutil.rmtree(self.places.counting / "faults" / user.name, ignore_errors=True)

    # -- counts --------------------------------------------------------------------------------

    def counts(self, user: User) -> Counts:
        """What `user` asked over ssh since the lab began; subtract two to get what lies between."""
        connections = self.sshd.connections(user.name)
        return Counts(
            logins=sum(one.accepted for one in connections),
            failed_logins=sum(not one.accepted for one in connections),
            sessions=sum(one.sessions for one in connections),
            log_scripts=counting.scripts_among(self._noted("looks", user)),
            commands=Counter(call.command for call in self.calls(user)),
        )

    def calls(self, user: User) -> list[Call]:
        """Command lines of `user` over ssh, oldest first; needs `count_commands`."""
        if not self.options.count_commands:
            raise LabError("this lab was started with count_commands=False")
        return counting.parse_calls(self._noted("calls", user))

    def _noted(self, what: str, user: User) -> str:
        path = self.places.counting / what / user.name
        return path.read_text(errors="surrogateescape") if path.exists() else ""

    def logins(self, user: User | None = None) -> int:
        """Logins that sshd accepted so far, of `user` or of all."""
        name = None if user is None else user.name
        return sum(one.accepted for one in self.sshd.connections(name))

    def failed_logins(self, user: User) -> int:
        """Connections that named `user` and were not let in."""
        return self.counts(user).failed_logins

    def connections(self) -> int:
        """TCP connections sshd took so far, whoever and however far they came."""
        return len(self.sshd.connections())

    def rpc_counts(self) -> dict[str, int]:
        """slurmctld's RPCs by message type (`REQUEST_JOB_USER_INFO`) since the last reset.

        All users and the lab's own questions together.
        """
        return counting.parse_sdiag(self.run(["sdiag"]).checked().out, by="message type")

    def rpc_counts_by_user(self) -> dict[str, int]:
        """slurmctld's RPCs by user name since the last reset."""
        return counting.parse_sdiag(self.run(["sdiag"]).checked().out, by="user")

    def reset_rpc_counts(self) -> None:
        """Set slurmctld's counts to zero; where tests run side by side, subtract instead."""
        self.run(["sdiag", "--reset"]).checked()

    def dbd_rpc_counts(self) -> dict[str, int]:
        """slurmdbd's RPCs by message type; one sacct is one `DBD_GET_JOBS_COND`."""
        return counting.parse_dbd_stats(self.run(["sacctmgr", "show", "stats"]).checked().out)

    # -- jobmond -------------------------------------------------------------------------------

    def jobmond_cluster_toml(self, user: User, name: str = "lab", **settings: TomlValue) -> str:
        """A `[clusters.NAME]` table that reaches this lab as `user`; `settings` win."""
        defaults: dict[str, TomlValue] = {
            "kind": "slurm",
            "transport": "ssh",
            "host": HOST,
            "port": self.ports.sshd,
            "user": user.name,
            "identity_file": str(user.key_file),
            "known_hosts_file": str(self.sshd.known_hosts_file),
        }
        # A JSON string, number, boolean or list of strings is TOML too.
        rows = [f"{key} = {json.dumps(value)}" for key, value in (defaults | settings).items()]
        return "\n".join([f"[clusters.{name}]", *rows]) + "\n"

    # -- waiting -------------------------------------------------------------------------------

    def wait_for(self, predicate: Callable[[], T], timeout_s: float, *, what: str = "") -> T:
        """Ask `predicate` until it is true and give its answer; raises TimeoutError."""
        return waiting.wait_for(predicate, timeout_s, what=what)

    async def until(self, predicate: Callable[[], T], timeout_s: float, *, what: str = "") -> T:
        """The same for a test whose event loop must go on turning."""
        return await waiting.until(predicate, timeout_s, what=what)

    # -- names ---------------------------------------------------------------------------------

    @property
    def user(self) -> User:
        """The first user."""
        return self.users[0]

    @property
    def nodes(self) -> tuple[str, ...]:
        """Slurm's names of the nodes; the daemon of the first is `slurmd.n1`."""
        return self.plan.nodes

    @property
    def folder(self) -> Path:
        """Where the lab keeps everything."""
        return self.places.folder
