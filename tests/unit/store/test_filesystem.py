from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.store.filesystem import mounted, network_file_system

MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/alice/local\040disk rw - xfs /dev/sdb1 rw
32 22 0:41 / /scratch rw - lustre mds@tcp:/scratch rw
33 22 0:42 / /homework rw - tmpfs tmpfs rw
34 22 0:43 / /over rw - ext4 /dev/sdc1 rw
35 22 0:44 / /over rw - cifs //server/over rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/jobmond", "ext4"),
        ("/home/alice/.local/state", "nfs4"),
        ("/home/alice/local disk/state", "xfs"),
        ("/scratch/x", "lustre"),
        ("/homework/x", "tmpfs"),
        ("/over", "cifs"),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str) -> None:
    assert mounted(MOUNTS, Path(path)) == kind


def test_only_network_file_systems_are_named(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert network_file_system(Path("/scratch/x"), mounts=mounts) == "lustre"
    assert network_file_system(Path("/homework/x"), mounts=mounts) is None
    assert network_file_system(Path("/scratch/x"), mounts=tmp_path / "missing") is None


@given(st.text())
def test_any_text_has_an_answer(text: str) -> None:
    mounted(text, Path("/x"))
