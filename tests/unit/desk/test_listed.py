"""Which job an entry of a registry file means."""

import pytest

from jobmond.analysis.activejobs import Entry
from jobmond.desk.aim import ClusterInfo
from jobmond.desk.listed import all_listed
from jobmond.model.state import Kind

LEO = ClusterInfo("leonardo", "slurm", (Kind.SLURM, Kind.NEL, Kind.LAUNCHER), hosts=("login",))
JUW = ClusterInfo("juwels", "slurm", (Kind.SLURM, Kind.NEL, Kind.LAUNCHER))
NAMES = {"leonardo": {"leonardo", "login"}, "juwels": {"juwels"}}


def valid(cluster, kind, native_id):
    shapes = {
        Kind.SLURM: native_id.isdigit(),
        Kind.NEL: len(native_id) == 16,
        Kind.LAUNCHER: native_id.startswith("cicd_"),
    }
    return None if shapes[kind] else f"{native_id} is no job of kind {kind}"


def listed(**entry):
    given = {"key": "k", "host": "login", **entry}
    [one] = all_listed(
        [Entry(**given)], [LEO, JUW], NAMES, real_name=lambda host: None, validate_id=valid
    )
    return one


@pytest.mark.parametrize(
    ("type_", "native_id", "kind"),
    [
        ("nel", "65f68ad6c803b542", Kind.NEL),
        ("nel", "1234567890123456", Kind.NEL),
        ("nel", "4711", Kind.SLURM),
        ("launcher", "cicd_1795968996253503257", Kind.LAUNCHER),
        ("launcher", "4711", Kind.SLURM),
        ("slurm", "4711", Kind.SLURM),
        (None, "65f68ad6c803b542", Kind.NEL),
    ],
)
def test_the_types_of_an_entry(type_, native_id, kind):
    target = listed(type=type_, id=native_id).target
    assert target is not None
    assert (target.ref, target.kind) == (f"leonardo/{native_id}", kind)


def test_an_id_of_another_form_is_that_entrys_error():
    one = listed(type="launcher", id="65f68ad6c803b542")
    assert one.target is None
    assert one.error == "65f68ad6c803b542: 65f68ad6c803b542 is no job of kind launcher"
