"""Which hosts an ssh_config names."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.daemon.hosts import ssh_hosts


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / ".ssh").mkdir()
    return tmp_path / ".ssh/config"


def hosts(config: Path) -> tuple[str, ...]:
    return ssh_hosts(config, home=config.parents[1])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Host leonardo\n  HostName login.leonardo.example\n", ("leonardo",)),
        ("Host a b\nHost c\n", ("a", "b", "c")),
        ("  host = a\nHOST=b\n", ("a", "b")),
        ('Host "a" b # not c\n#Host d\n', ("a", "b")),
        ("Host *\nHost a* b? !c d\n", ("d",)),
        ("Host a\nHost a\n", ("a",)),
        ("Host -oProxyCommand=x\nHost user@a\n", ()),
        ("Host a'b c\n", ("c",)),
        ("HostName a\nMatch host b\n", ()),
        ("Host 10.0.0.1 [::1] ::1\n", ("10.0.0.1", "[::1]", "::1")),
        ("", ()),
    ],
)
def test_hosts_are_found_and_patterns_are_not(
    config: Path, text: str, found: tuple[str, ...]
) -> None:
    config.write_text(text)
    assert hosts(config) == found


def test_what_is_included_counts_where_it_is_included(config: Path, tmp_path: Path) -> None:
    parts = config.parent / "config.d"
    parts.mkdir()
    (parts / "2.conf").write_text("Host second\n")
    (parts / "1.conf").write_text("Host first\nInclude nested\n")
    (config.parent / "nested").write_text("Host nested\n")
    (tmp_path / "elsewhere").write_text("Host elsewhere\n")
    config.write_text(
        "Host before\n"
        f"Include config.d/*.conf {tmp_path}/elsewhere\n"
        "Include ~/elsewhere missing/*\n"
        "Host after\n"
    )
    assert hosts(config) == ("before", "first", "nested", "second", "elsewhere", "after")


def test_a_file_that_includes_itself_ends(config: Path) -> None:
    (config.parent / "other").write_text("Host b\nInclude config\n")
    config.write_text("Host a\nInclude config other\n")
    assert hosts(config) == ("a", "b")


def test_a_chain_of_files_ends(config: Path) -> None:
    for number in range(40):
        (config.parent / str(number)).write_text(f"Host h{number}\nInclude {number + 1}\n")
    config.write_text("Include 0\n")
    assert hosts(config)[-1] == "h15"  # sixteen deep, as ssh


def test_no_file_no_hosts(config: Path) -> None:
    assert hosts(config) == ()
    config.mkdir()
    assert hosts(config) == ()


@given(content=st.binary(max_size=500))
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    config = tmp_path_factory.mktemp("home") / "config"
    config.write_bytes(b"Host a\n" + content)
    found = ssh_hosts(config, home=config.parent)
    assert found[0] == "a"
    assert all("*" not in host and not host.startswith("-") for host in found)
