"""What `ssh` is started with: nothing that could ever log in."""

from pathlib import Path

from jobmond.transports.openssh.master import Master, check_words, session_words

MASTER = Master("login.leonardo", Path("/run/100%"), 4711)


def options(words: list[str]) -> set[str]:
    return {words[i + 1] for i, word in enumerate(words) if word == "-o"}


def test_there_is_no_way_but_the_socket() -> None:
    for words in (
        session_words("ssh", MASTER, "exec true"),
        check_words("ssh", MASTER.host, MASTER.socket),
    ):
        assert words[:3] == ["ssh", "-F", "none"]  # no ssh_config can undo what follows
        assert options(words) >= {
            "ProxyCommand=false",
            "ControlMaster=no",
            "BatchMode=yes",
            "PreferredAuthentications=none",
            "ClearAllForwardings=yes",
        }
        assert words[words.index("-S") + 1] == "/run/100%%"


def test_a_session_is_without_terminal_agent_and_windows() -> None:
    words = session_words("ssh", MASTER, "exec true")
    assert {"-T", "-a", "-x"} <= set(words)
    assert words[-3:] == ["--", "login.leonardo", "exec true"]


def test_a_look_runs_nothing() -> None:
    words = check_words("ssh", "-oProxyCommand=reboot", MASTER.socket)
    assert words[-4:] == ["-O", "check", "--", "-oProxyCommand=reboot"]
