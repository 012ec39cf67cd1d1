"""The harness keeps its promises: what it starts works, what it breaks heals, nothing is left."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.live import processes
from tests.live.counting import Call
from tests.live.lab import Lab, Submission
from tests.live.leftovers import clear_orphans
from tests.live.machine import LabError
from tests.live.options import LabOptions
from tests.live.users import User

pytestmark = pytest.mark.live

MakeLab = Callable[[LabOptions], Lab]
SMALL = LabOptions(nodes=2, users=1, accounting=False)
ROOT = Path(__file__).parents[2]


def test_a_job_ends_and_accounting_says_how(lab: Lab, user: User) -> None:
    good, bad = lab.sbatch_many(
        user,
        [Submission("echo 'here $HOME'", ("--job-name=good",)), Submission("exit 3")],
    )
    assert lab.wait_for_state(good, "COMPLETED") == "COMPLETED"
    assert lab.wait_for_state(bad, "FAILED") == "FAILED"
    assert lab.wait_for_accounting(good, "COMPLETED") == "COMPLETED"
    assert lab.wait_for_accounting(bad, "FAILED") == "FAILED"
    assert (user.home / f"slurm-{good}.out").read_text() == "here $HOME\n"
    # The row of a job that started at once is a stub named `allocation` for some seconds.
    lab.wait_for(
        lambda: "good" in lab.sacct("-X", "-n", "-j", good, "--format=JobName").out,
        20,
        what="the job's name in accounting",
    )


def test_a_refused_submission_is_an_error(lab: Lab, user: User) -> None:
    with pytest.raises(LabError, match="invalid partition"):
        lab.sbatch(user, "true", "--partition=nowhere")


def test_every_node_runs_a_job_of_its_own(lab: Lab, user: User) -> None:
    job = lab.sbatch(user, "srun hostname", f"--nodes={len(lab.nodes)}")
    assert lab.wait_for_state(job, "COMPLETED", "FAILED") == "COMPLETED"
    output = (user.home / f"slurm-{job}.out").read_text()
    assert len(output.splitlines()) == len(lab.nodes)


def test_calls_over_ssh_are_counted_by_user_and_command(lab: Lab, user: User) -> None:
    other = lab.add_user()
    lab.ssh(user, "squeue -h -o '%i %j'; bash -lc 'scontrol ping'").checked()
    before = lab.counts(user)
    lab.ssh(user, "squeue -h; sacct -X >/dev/null; sh -s", text="squeue -h\n").checked()
    used = lab.counts(user) - before
    assert (used.logins, used.failed_logins, used.sessions) == (1, 0, 1)
    assert (used.squeue, used.sacct, used.scontrol) == (2, 1, 0)
    assert lab.calls(user)[:2] == [
        Call("squeue", ("-h", "-o", "%i %j")),
        Call("scontrol", ("ping",)),
    ]
    assert lab.counts(other).commands == {}
    assert lab.logins(user) == 2
    assert lab.logins() >= lab.logins(user)


def test_the_lab_itself_is_not_counted_as_the_user(lab: Lab, user: User) -> None:
    lab.sbatch(user, "true")
    lab.squeue("-h", user=user)
    assert lab.counts(user).commands == {}
    assert lab.counts(user).logins == 0


def test_a_login_with_a_wrong_key_is_a_failed_one(lab: Lab, user: User) -> None:
    stranger = lab.add_user()
    argv = ["ssh", "-F", str(lab.sshd.client_config_file), "-i", str(stranger.key_file)]
    answer = lab.run([*argv, "-o", f"User={user.name}", stranger.name, "true"])
    assert answer.code == 255
    lab.wait_for(lambda: lab.failed_logins(user) == 1, 10, what="the failed login")
    assert lab.logins(user) == 0


def test_slurm_counts_questions_by_type_and_by_user(make_lab: MakeLab) -> None:
    own = make_lab(LabOptions(nodes=2, users=1))
    own.reset_rpc_counts()
    rpcs, dbd = own.rpc_counts(), own.dbd_rpc_counts()
    own.ssh(own.user, f"squeue -h -u {own.user.name}; sacct -X -u {own.user.name}").checked()
    assert rpcs.get("REQUEST_JOB_USER_INFO", 0) == 0
    assert own.rpc_counts()["REQUEST_JOB_USER_INFO"] == 1
    assert own.rpc_counts_by_user()[own.user.name] >= 1
    assert own.dbd_rpc_counts()["DBD_GET_JOBS_COND"] == dbd.get("DBD_GET_JOBS_COND", 0) + 1


def test_a_frozen_sshd_hangs_with_its_sessions_and_thaws(make_lab: MakeLab) -> None:
    own = make_lab(SMALL)
    argv = ["ssh", "-F", str(own.sshd.client_config_file), own.user.name]
    with subprocess.Popen([*argv, "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as talk:
        assert talk.stdin is not None
        assert talk.stdout is not None
        talk.stdin.write(b"one\n")
        talk.stdin.flush()
        assert talk.stdout.readline() == b"one\n"
        own.freeze("sshd")
        tree = own.daemon("sshd").children() | {own.daemon("sshd").pid}
        assert len(tree) >= 4  # listener, monitor, session, cat
        assert {processes.table()[pid].state for pid in tree} == {"T"}
        with pytest.raises(LabError, match="more than 1 s"):
            own.ssh(own.user, "true", timeout_s=1)
        own.thaw("sshd")
        own.ssh(own.user, "true").checked()
        talk.stdin.write(b"two\n")
        talk.stdin.flush()
        assert talk.stdout.readline() == b"two\n"
        talk.stdin.close()


def test_sessions_die_and_the_listener_lives(make_lab: MakeLab) -> None:
    own = make_lab(SMALL)
    argv = ["ssh", "-F", str(own.sshd.client_config_file), own.user.name]
    with subprocess.Popen(
        [*argv, "echo up; sleep 600"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as hanging:
        assert hanging.stdout is not None
        assert hanging.stdout.readline() == b"up\n"
        assert own.kill_sessions() == 1
        assert hanging.wait(20) == 255
    assert own.ssh(own.user, "echo still").checked().out == "still\n"
    assert own.kill_sessions() == 0


def test_the_host_key_changes_and_is_trusted_again(make_lab: MakeLab) -> None:
    own = make_lab(SMALL)
    own.ssh(own.user, "true").checked()
    own.change_host_key()
    refused = own.ssh(own.user, "true")
    assert refused.code == 255
    assert "HOST IDENTIFICATION HAS CHANGED" in refused.err
    own.trust_host_key()
    own.ssh(own.user, "true").checked()


def test_sshd_takes_other_settings_and_a_banner(make_lab: MakeLab) -> None:
    own = make_lab(SMALL)
    own.banner(own.user, "it's $HOME", "second|line")
    assert own.ssh(own.user, "echo end").out == "it's $HOME\nsecond|line\nend\n"
    own.banner(own.user)
    assert own.ssh(own.user, "echo end").out == "end\n"
    own.restart_sshd(max_sessions=2, extra="ForceCommand echo forced")
    assert "MaxSessions 2" in own.sshd.config_file.read_text()
    assert own.ssh(own.user, "echo end").out == "forced\n"


def test_a_fault_answers_in_place_of_the_command(lab: Lab, user: User) -> None:
    lab.fault(user, "squeue", "echo nonsense; exit 9")
    answer = lab.ssh(user, "squeue -h")
    assert (answer.code, answer.out) == (9, "nonsense\n")
    lab.no_faults(user)
    assert lab.ssh(user, "squeue -h").code == 0
    assert lab.counts(user).squeue == 2


def test_every_daemon_stops_freezes_and_comes_back(make_lab: MakeLab) -> None:
    own = make_lab(LabOptions(nodes=2, users=1))
    for name in ("slurmctld", "slurmdbd", "mariadbd", "slurmd.n1", "sshd", "munged"):
        own.stop(name)
        assert not own.running(name)
        own.start(name)
        own.kill(name)
        assert not own.running(name)
        own.start(name)
        own.freeze(name)
        assert processes.table()[own.daemon(name).pid].state == "T"
        own.thaw(name)
    # Slurm's clients and daemons reconnect by themselves; a job proves that all of them did.
    job = own.sbatch(own.user, "true")
    assert own.wait_for_state(job, "COMPLETED", "FAILED") == "COMPLETED"
    assert own.wait_for_accounting(job, "COMPLETED") == "COMPLETED"


def test_a_killed_slurmd_leaves_its_job_running(make_lab: MakeLab) -> None:
    own = make_lab(SMALL)
    job = own.sbatch(own.user, "exec sleep 612", f"--nodelist={own.nodes[0]}")
    own.wait_for_state(job, "RUNNING")
    sleepers = own.wait_for(lambda: running_as(own.user, "sleep"), 20, what="the job's process")
    own.kill("slurmd.n1")
    assert running_as(own.user, "sleep") == sleepers
    own.down()
    assert not {pid for pid in sleepers if (row := processes.read_process(pid)) and row.alive}


def test_slurm_conf_changes_while_it_runs(make_lab: MakeLab) -> None:
    own = make_lab(SMALL)
    own.set_slurm(MinJobAge=77)
    assert "MinJobAge               = 77 sec" in own.scontrol("show", "config").out


def test_a_lab_without_accounting_has_no_sacct(make_lab: MakeLab) -> None:
    own = make_lab(SMALL)
    assert "slurmdbd" not in own.daemon_names
    assert own.sacct("-X").code != 0
    job = own.sbatch(own.user, "exit 4")
    own.wait_for_state(job, "FAILED")


def test_memory_is_limited_by_the_kernel_where_it_can(lab: Lab, user: User) -> None:
    if not lab.cgroup:
        pytest.skip("memory limits: cgroup v1 is not mounted here")
    eater = f"{sys.executable} -c 'x = bytearray(300_000_000); print(len(x))'"
    python = "python3 -c 'x = b\"x\" * 300_000_000'"
    job = lab.sbatch(user, f"{python} || {eater}", "--mem=50")
    assert lab.wait_for_state(job, "OUT_OF_MEMORY", "FAILED", "COMPLETED") == "OUT_OF_MEMORY"


def test_the_cluster_table_is_toml_that_reaches_the_lab(lab: Lab, user: User) -> None:
    text = lab.jobmond_cluster_toml(user, discover=True, users=[user.name], port=7)
    assert tomllib.loads(text) == {
        "clusters": {
            "lab": {
                "kind": "slurm",
                "transport": "ssh",
                "host": "127.0.0.1",
                "port": 7,
                "user": user.name,
                "identity_file": str(user.key_file),
                "known_hosts_file": str(lab.sshd.known_hosts_file),
                "discover": True,
                "users": [user.name],
            }
        }
    }


def test_two_labs_share_nothing_and_the_second_leaves_nothing(lab: Lab) -> None:
    with Lab(LabOptions(nodes=2, users=1)) as second:
        assert second.folder != lab.folder
        assert second.ports.first != lab.ports.first
        assert not set(second.nodes) & set(lab.nodes)
        name = second.user.name
        assert name not in {one.name for one in lab.users}
        job = second.sbatch(second.user, "true")
        second.wait_for_state(job, "COMPLETED")
        assert second.squeue("-h", "-t", "all", "-u", name, "-o", "%u").out == f"{name}\n"
        assert lab.squeue("-h", "-t", "all", "-u", name, "-o", "%u").out == ""
        folder, first_port = second.folder, second.ports.first
    assert not folder.exists()
    assert not processes.listening(first_port)
    assert name not in {entry.pw_name for entry in pwd.getpwall()}
    assert not list(Path("/sys/fs/cgroup").glob(f"*/slurm_{second.places.tag}*"))
    assert lab.scontrol("ping").code == 0


def test_a_lab_that_cannot_start_says_why_and_leaves_nothing() -> None:
    broken = Lab(LabOptions(nodes=2, users=1, accounting=False, slurm_conf_extra="NoSuchKey=1"))
    with pytest.raises(LabError, match="NoSuchKey"):
        broken.up()
    assert not broken.folder.exists()
    assert broken.users
    assert broken.users[0].name not in {entry.pw_name for entry in pwd.getpwall()}


def test_a_lab_whose_process_was_killed_is_cleared_by_the_next() -> None:
    script = (
        "from tests.live.lab import Lab, LabOptions\n"
        "lab = Lab(LabOptions(nodes=2, users=1, accounting=False)); lab.up()\n"
        "job = lab.sbatch(lab.user, 'env -i sleep 613')\n"
        "lab.wait_for_state(job, 'RUNNING')\n"
        "print(lab.folder, lab.user.name, lab.ports.sshd, flush=True)\n"
        "input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
    ) as doomed:
        assert doomed.stdout is not None
        folder, name, sshd_port = doomed.stdout.readline().split()
        uid = pwd.getpwnam(name).pw_uid
        clear_orphans()
        assert Path(folder).exists()  # its process lives
        doomed.send_signal(signal.SIGKILL)
    clear_orphans()
    assert not Path(folder).exists()
    assert not processes.listening(int(sshd_port))
    assert not {row.pid for row in processes.table().values() if row.alive and row.uid == uid}
    assert name not in {entry.pw_name for entry in pwd.getpwall()}


def running_as(user: User, command: str) -> set[int]:
    """Pids of the user's processes called `command`."""
    rows = processes.table().values()
    return {row.pid for row in rows if row.alive and (row.uid, row.name) == (user.uid, command)}
