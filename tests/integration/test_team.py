"""Several people on one host: real users at a real socket."""

import grp
import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from sqlite3 import connect

import click
import pytest
import wcwidth

from tests.accounts import change_accounts
from tests.integration.host import ROOT, Host, is_root, pid_of
from tests.needs import need

SYSTEM_PYTHON = Path("/usr/bin/python3")  # that of a virtual environment may be in a closed home


@dataclass
class Person:
    """A user of this host, who has `jobmonctl` and the path of the socket."""

    name: str
    programs: Path
    socket: Path
    groups: str = "--init-groups"

    def command(self, *words: str) -> list[str]:
        # Short: what a login does for a person, without the person's profile.
        return ["setpriv", f"--reuid={self.name}", f"--regid={self.name}", self.groups, *words]

    def ctl(self, *words: str) -> "subprocess.CompletedProcess[str]":
        program = (str(SYSTEM_PYTHON), "-B", "-m", "jobmond.cli.main", *words)
        return subprocess.run(
            self.command(*program, "--socket", str(self.socket)),
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONPATH": str(self.programs)},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )


@dataclass
class Team:
    """A daemon of root's whose socket is open to a group."""

    host: Host
    group: str
    place: Path
    people: dict[str, Person] = field(default_factory=dict)

    def __getitem__(self, who: str) -> Person:
        return self.people[who]


@pytest.fixture(scope="module")
def accounts() -> Iterator[tuple[str, Callable[[str], str]]]:
    """A group, and users by their role: two members, an admin who is one, and a stranger."""
    need(is_root(), "only root can make users")
    need("setpriv", "setpriv is missing (Debian: util-linux)")
    need("useradd", "useradd is missing (Debian: passwd)")
    base = f"jmt{os.getpid()}"
    group = f"{base}g"
    names = {who: f"{base}{who[0]}" for who in ("member", "other", "boss", "stranger")}
    change_accounts(["groupadd", group])
    try:
        for who, name in names.items():
            groups = [] if who == "stranger" else ["-G", group]
            change_accounts(["useradd", "-M", "-d", "/nonexistent", "-U", *groups, name])
        yield group, names.__getitem__
    finally:
        for name in names.values():
            change_accounts(["userdel", "-f", name], fine=(0, 6))
        change_accounts(["groupdel", group], fine=(0, 6))


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """jobmonctl where everybody can read it."""
    need(SYSTEM_PYTHON.exists(), f"{SYSTEM_PYTHON} is missing (Debian: python3)")
    probe = [str(SYSTEM_PYTHON), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    need(subprocess.run(probe, check=False).returncode == 0, f"{SYSTEM_PYTHON} is too old")
    with tempfile.TemporaryDirectory(prefix="jobmond-team-") as name:
        folder = Path(name)
        hidden = shutil.ignore_patterns("__pycache__")
        for source in (
            ROOT / "jobmond",
            Path(click.__file__).parent,
            Path(wcwidth.__file__).parent,
        ):
            shutil.copytree(source, folder / source.name, ignore=hidden)
        subprocess.run(["chmod", "-R", "a+rX", name], check=True)
        yield folder


@pytest.fixture(scope="module")
def team(accounts: tuple[str, Callable[[str], str]], programs: Path) -> Iterator[Team]:
    group, named = accounts
    with tempfile.TemporaryDirectory(prefix="jobmond-team-") as name:
        place = Path(name)
        place.chmod(0o755)
        socket = place / "run/socket"
        socket.parent.mkdir(mode=0o755)
        host = Host(place / "home")
        host.home.chmod(0o700)
        host.configure(
            f'socket = "{socket}"\nsocket_group = "{group}"\nadmins = ["{named("boss")}"]\n'
            '[clusters.here]\nkind = "local"\nslurm = false\n'
        )
        made = Team(host, group, place)
        for who in ("member", "other", "boss", "stranger"):
            made.people[who] = Person(named(who), programs, socket)
        host.daemon()
        yield made
        host.close()


def one_line(done: "subprocess.CompletedProcess[str]", code: int) -> str:
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (code, 1, ""), done.stderr
    return done.stderr


def mine(team: Team, who: str) -> str:
    """A job that this person added: a process of theirs."""
    process = team.host.spawn(*team[who].command("sleep", "600"))
    done = team[who].ctl("add", pid_of(process), "--json")
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["ref"])


def test_the_socket_is_the_groups_and_nobody_elses(team: Team) -> None:
    found = team["member"].socket.stat()
    assert (found.st_mode & 0o777, found.st_uid) == (0o660, 0)
    assert team["member"].ctl("status").returncode == 0


def test_members_read_everything_and_change_their_own(team: Team) -> None:
    ref = mine(team, "member")
    member, other = team["member"], team["other"]
    [job] = [j for j in json.loads(other.ctl("status", "--json").stdout)["jobs"] if j["ref"] == ref]
    assert (job["owner"], job["user"]) == (member.name, member.name)
    for words in (("show", ref), ("events",), ("history",), ("followups",), ("discover",)):
        assert other.ctl(*words).returncode == 0, words

    refusal = f"{ref} belongs to {member.name}: only its owner and admins change it"
    for words in (("label", ref, "+mine"), ("rm", ref)):
        line = one_line(other.ctl(*words), 1)
        assert refusal in line, words
    assert member.ctl("label", ref, "+mine").returncode == 0
    [job] = [j for j in json.loads(other.ctl("status", "--json").stdout)["jobs"] if j["ref"] == ref]
    assert job["labels"] == ["mine"]
    assert member.ctl("rm", ref).returncode == 0


def test_adding_a_job_again_does_not_take_it_from_its_owner(team: Team) -> None:
    ref = mine(team, "member")
    done = team["other"].ctl("add", ref.partition("/")[2], "--label", "taken")
    assert done.returncode == 1
    assert team["member"].name in done.stderr
    [job] = [j for j in team.host.status()["jobs"] if j["ref"] == ref]
    assert (job["owner"], job["labels"]) == (team["member"].name, [])


def test_admins_change_every_job(team: Team) -> None:
    ref = mine(team, "member")
    assert team["boss"].ctl("label", ref, "+seen").returncode == 0
    assert team.host.ctl("rm", ref).returncode == 0  # and so does the daemon's user


def test_somebody_in_more_groups_than_fit_is_a_member(team: Team) -> None:
    """Python cannot ask the kernel for so many, and the host's lists are asked."""
    groups = ",".join(map(str, [_gid(team.group), *range(50_000, 50_300)]))
    crowded = replace(team["member"], groups=f"--groups={groups}")
    assert crowded.ctl("status").returncode == 0
    outside = replace(team["stranger"], groups=f"--groups={groups}")
    assert "not to you" in one_line(outside.ctl("status"), 1)


def test_a_stranger_is_told_whose_it_is(team: Team) -> None:
    line = one_line(team["stranger"].ctl("status"), 3)
    assert "belongs to root and is not open to you" in line


def test_a_stranger_who_goes_around_the_client_gets_no_further(team: Team) -> None:
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); "
        f"sys.exit(s.connect_ex({str(team['stranger'].socket)!r}))"
    )
    done = subprocess.run(
        team["stranger"].command(str(SYSTEM_PYTHON), "-c", program), cwd="/", check=False
    )
    assert done.returncode == 13  # EACCES


def test_who_the_kernel_names_is_asked_not_what_the_client_says(team: Team) -> None:
    """Somebody who gets hold of an open socket is still who they are."""
    socket = team["stranger"].socket
    socket.chmod(0o666)
    try:
        program = (
            "import http.client, socket, sys\n"
            "s = socket.socket(socket.AF_UNIX); "
            f"s.connect({str(socket)!r})\n"
            "c = http.client.HTTPConnection('x'); c.sock = s\n"
            "c.request('GET', '/v1/status', headers={'X-Uid': '0'})\n"
            "r = c.getresponse(); print(r.status, r.read().decode())"
        )
        done = subprocess.run(
            team["stranger"].command(str(SYSTEM_PYTHON), "-c", program),
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        socket.chmod(0o660)
    assert done.stdout.startswith("403 ")
    assert "this jobmond belongs to root, not to you" in done.stdout


def test_the_trail_names_who_changed_what(team: Team) -> None:
    ref = mine(team, "member")
    team["boss"].ctl("label", ref, "+x")
    uids = {who: _uid(team[who].name) for who in ("member", "boss")}
    with closing(connect(team.host.state / "jobmond.db")) as database:
        rows = database.execute("select * from audit").fetchall()
    about = [row for row in rows if any(ref in str(value) for value in row)]
    assert [next(who for who, uid in uids.items() if uid in row) for row in about] == [
        "member",
        "boss",
    ]


def _uid(name: str) -> int:
    return pwd.getpwnam(name).pw_uid


def _gid(name: str) -> int:
    return grp.getgrnam(name).gr_gid


def test_a_socket_that_anybody_made_is_not_talked_to(team: Team, tmp_path: Path) -> None:
    """An impostor gets no request of ours."""
    place = Path(tempfile.mkdtemp(prefix="jobmond-team-"))
    try:
        place.chmod(0o777)
        bad = place / "socket"
        program = f"import socket; s = socket.socket(socket.AF_UNIX); s.bind({str(bad)!r})"
        subprocess.run(
            team["stranger"].command(str(SYSTEM_PYTHON), "-c", program), cwd="/", check=True
        )
        member = team["member"]
        line = one_line(Person(member.name, member.programs, bad).ctl("status"), 3)
        assert f"belongs to {team['stranger'].name}" in line
    finally:
        shutil.rmtree(place)
