"""The witnesses read rightly: literal output of sdiag, sacctmgr and sshd 9.2."""

import subprocess
from pathlib import Path

from tests.live.counting import (
    Call,
    Counts,
    install_wrapper,
    install_wrappers,
    parse_calls,
    parse_dbd_stats,
    parse_sdiag,
    scripts_among,
)
from tests.live.sshd import Connection, read_connections

SDIAG = """\
*******************************************************
Server thread count:  3

Remote Procedure Call statistics by message type
\tREQUEST_PARTITION_INFO                  ( 2009) count:49     ave_time:205    total_time:10074
\tREQUEST_JOB_USER_INFO                   ( 2039) count:7      ave_time:170    total_time:1195

Remote Procedure Call statistics by user
\troot            (       0) count:145    ave_time:222    total_time:32227
\talice           (    1003) count:3      ave_time:519    total_time:1558

Pending RPC statistics
\tREQUEST_TERMINATE_JOB                   ( 6011) count:9
"""

DBD_STATS = """\
Internal DBD rollup last ran Sun Nov 29 18:23:22 2026 (1795976602)
\tTotal cycles: 1

Remote Procedure Call statistics by message type
\tSLURM_PERSIST_INIT       ( 6500) count:10     ave_time:649    total_time:6498
\tDBD_GET_JOBS_COND        ( 1444) count:2      ave_time:1474   total_time:2948

Remote Procedure Call statistics by user
\tslurm               (     64030) count:19     ave_time:1170   total_time:22247
"""

SSHD = """\
Server listening on 127.0.0.1 port 12336.
Connection from 127.0.0.1 port 33552 on 127.0.0.1 port 12336 rdomain ""
Connection from 127.0.0.1 port 33560 on 127.0.0.1 port 12336 rdomain ""
Accepted key ED25519 SHA256:8Qn found at /tmp/x.pub:1
Postponed publickey for alice from 127.0.0.1 port 33552 ssh2 [preauth]
Accepted publickey for alice from 127.0.0.1 port 33552 ssh2: ED25519 SHA256:8Qn
Starting session: command for alice from 127.0.0.1 port 33552 id 0
Starting session: command for alice from 127.0.0.1 port 33552 id 1
Failed publickey for bob from 127.0.0.1 port 33560 ssh2: ED25519 SHA256:abc
Connection closed by authenticating user bob 127.0.0.1 port 33560 [preauth]
Disconnected from user alice 127.0.0.1 port 33552
Connection from 127.0.0.1 port 33552 on 127.0.0.1 port 12336 rdomain ""
Connection closed by 127.0.0.1 port 33552 [preauth]
"""


def test_sdiag_sections_are_kept_apart() -> None:
    assert parse_sdiag(SDIAG, by="message type") == {
        "REQUEST_PARTITION_INFO": 49,
        "REQUEST_JOB_USER_INFO": 7,
    }
    assert parse_sdiag(SDIAG, by="user") == {"root": 145, "alice": 3}


def test_slurmdbd_stats_leave_out_what_is_no_question() -> None:
    assert parse_dbd_stats(DBD_STATS) == {"DBD_GET_JOBS_COND": 2}


def test_a_port_that_comes_back_is_another_connection() -> None:
    assert read_connections(SSHD.splitlines()) == [
        Connection(33552, "alice", accepted=True, sessions=2),
        Connection(33560, "bob"),
        Connection(33552),
    ]


def test_counts_subtract_to_what_came_between() -> None:
    before = Counts(logins=1, sessions=4, commands={"squeue": 2, "sacct": 1})
    after = Counts(logins=1, failed_logins=1, sessions=6, commands={"squeue": 3, "sacct": 1})
    used = after - before
    assert used == Counts(failed_logins=1, sessions=2, commands={"squeue": 1})
    assert (used.squeue, used.sacct, used.scontrol) == (1, 0, 0)


def test_a_wrapper_notes_every_argument_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "counting"
    install_wrappers(folder)
    wrapper = install_wrapper(folder, "squeue", "/bin/true")
    subprocess.run([wrapper, "-o", "%i|%T\n%j", "", "a b"], check=True)
    subprocess.run([wrapper], check=True)
    (notes,) = (folder / "calls").iterdir()
    assert parse_calls(notes.read_text()) == [
        Call("squeue", ("-o", "%i|%T\n%j", "", "a b")),
        Call("squeue", ()),
    ]


def test_one_script_may_look_at_many_files(tmp_path: Path) -> None:
    folder = tmp_path / "counting"
    install_wrappers(folder)
    script = f'"{folder}/bin/stat" / >/dev/null; timeout 5 "{folder}/bin/stat" / >/dev/null'
    subprocess.run(["/bin/sh", "-c", script], check=True, start_new_session=True)
    subprocess.run(["/bin/sh", "-c", script], check=True, start_new_session=True)
    (notes,) = (folder / "looks").iterdir()
    assert scripts_among(notes.read_text()) == 2
    assert scripts_among("") == 0
    assert scripts_among("7\n7\n8\n7\n") == 3


def test_a_note_cut_off_in_the_middle_is_no_call() -> None:
    assert parse_calls("squeue\x1f-h\x1esac") == [Call("squeue", ("-h",))]
