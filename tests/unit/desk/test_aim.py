"""What a word given to `add` means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobmond.desk.aim import ClusterInfo, Target, aim
from jobmond.errors import ConfigError, JobmondError, Refused
from jobmond.model.state import Kind
from tests.doubles_desk import BARE_LOCAL, JURECA, LEONARDO, LOCAL, valid

OFF = ClusterInfo("old", "slurm", (Kind.SLURM,), active=False)


def aimed(word, *clusters, kind=None, cluster=None):
    return aim(word, kind=kind, cluster=cluster, clusters=clusters, validate_id=valid)


def test_a_number_with_one_slurm_cluster():
    assert aimed("4711", LEONARDO) == Target(
        "leonardo",
        Kind.SLURM,
        "4711",
        "'4711' taken as leonardo/4711: cluster leonardo, kind slurm",
    )


def test_a_ref_leaves_nothing_to_guess():
    assert aimed("leonardo/4711_3", LEONARDO, JURECA) == Target("leonardo", Kind.SLURM, "4711_3")


def test_a_cluster_option_leaves_nothing_to_guess():
    assert aimed("4711", LEONARDO, JURECA, cluster="jureca") == Target("jureca", Kind.SLURM, "4711")


def test_two_clusters_are_ambiguous_and_both_named():
    with pytest.raises(Refused, match=r"leonardo/4711 .*jureca/4711") as refusal:
        aimed("4711", LEONARDO, JURECA)
    assert refusal.value.exit_code == 1


def test_a_pid_is_local_beside_slurm():
    target = aimed("pid-4711", LEONARDO, LOCAL)
    assert (target.ref, target.kind) == ("local/pid-4711", Kind.LOCAL)


def test_kind_local_makes_a_number_a_process():
    target = aimed("4711", LEONARDO, LOCAL, kind=Kind.LOCAL)
    assert (target.ref, target.kind) == ("local/pid-4711", Kind.LOCAL)


def test_a_number_is_a_slurm_job_where_slurm_is():
    target = aimed("4711", LOCAL)
    assert (target.ref, target.kind) == ("local/4711", Kind.SLURM)


def test_a_number_is_a_process_only_where_nothing_else_can_be():
    target = aimed("4711", BARE_LOCAL)
    assert (target.ref, target.kind) == ("local/pid-4711", Kind.LOCAL)
    assert target.guessed == "'4711' taken as local/pid-4711: cluster local, kind local"


def test_a_number_is_slurm_beside_bare_local():
    assert aimed("4711", BARE_LOCAL, LEONARDO).ref == "leonardo/4711"


def test_a_switched_off_cluster_is_no_guess_beside_a_live_one():
    assert aimed("4711", OFF, LEONARDO).cluster == "leonardo"
    assert aimed("old/4711", OFF, LEONARDO).cluster == "old"
    assert aimed("4711", OFF).cluster == "old"


def test_unknown_cluster_names_the_nearest():
    with pytest.raises(ConfigError, match=r"unknown cluster 'leonrado'; nearest: 'leonardo'"):
        aimed("leonrado/4711", LEONARDO)
    with pytest.raises(ConfigError, match=r"unknown cluster 'leonrado'; nearest: 'leonardo'"):
        aimed("4711", LEONARDO, cluster="leonrado")


def test_unknown_cluster_with_nothing_near_names_all():
    with pytest.raises(ConfigError, match="configured: leonardo, jureca"):
        aimed("zzz/4711", LEONARDO, JURECA)


def test_ref_and_option_that_disagree():
    with pytest.raises(ConfigError, match="is on leonardo, but --cluster says jureca"):
        aimed("leonardo/4711", LEONARDO, JURECA, cluster="jureca")


def test_ref_and_option_that_agree():
    assert aimed("leonardo/4711", LEONARDO, cluster="leonardo").ref == "leonardo/4711"


def test_a_kind_the_cluster_lacks():
    with pytest.raises(ConfigError, match="leonardo has no jobs of kind local; it has: slurm"):
        aimed("4711", LEONARDO, cluster="leonardo", kind=Kind.LOCAL)
    with pytest.raises(ConfigError, match="no cluster with jobs of kind iris"):
        aimed("a/b", LEONARDO, cluster=None, kind=Kind.IRIS)


def test_an_id_nobody_takes():
    with pytest.raises(ConfigError, match="a SLURM id looks like"):
        aimed("$(touch /tmp/p)", LEONARDO, cluster="leonardo")
    with pytest.raises(ConfigError, match="a SLURM id looks like"):
        aimed("-h", LEONARDO)


IRIS = ClusterInfo("pond", "iris", (Kind.IRIS,))


def aimed_with_iris(word, *clusters, kind=None, cluster=None):
    def check(name, kind, native):
        if kind is not Kind.IRIS:
            return valid(name, kind, native)
        return None if "/" in native.strip("/") and native[0] != "/" else "write user/job"

    return aim(word, kind=kind, cluster=cluster, clusters=clusters, validate_id=check)


def test_an_iris_id_has_a_user_and_may_begin_with_a_slash():
    for word in ("/alice/train", "alice/train"):
        target = aimed_with_iris(word, LEONARDO, LOCAL, IRIS)
        assert (target.ref, target.kind) == ("pond/alice/train", Kind.IRIS)
        assert target.guessed == f"'{word}' taken as pond/alice/train: cluster pond, kind iris"
    assert aimed_with_iris("pond/alice/train", IRIS).native_id == "alice/train"
    assert aimed_with_iris("pond//alice/train", IRIS).native_id == "alice/train"
    assert aimed_with_iris("4711", LEONARDO, IRIS).kind is Kind.SLURM


def test_a_number_is_a_process_beside_sources_whose_ids_are_never_numbers():
    assert aimed_with_iris("4711", IRIS, BARE_LOCAL).ref == "local/pid-4711"
    with pytest.raises(ConfigError, match="write user/job"):
        aimed_with_iris("4711", IRIS)
    with pytest.raises(ConfigError, match="write user/job"):
        aimed_with_iris("4711", IRIS, BARE_LOCAL, kind=Kind.IRIS)


def test_a_user_of_iris_may_be_called_like_a_cluster():
    target = aimed_with_iris("leonardo/train", LEONARDO, IRIS, cluster="pond")
    assert target.ref == "pond/leonardo/train"
    assert aimed_with_iris("/leonardo/train", LEONARDO, IRIS).ref == "pond/leonardo/train"


K8S = ClusterInfo("k8s", "kubernetes", (Kind.KUBERNETES,))


def aimed_with_kubernetes(word, *clusters, cluster=None):
    def check(name, kind, native):
        if kind is Kind.KUBERNETES:
            return None if native.count("/") == 1 and native[0] != "/" else "write namespace/name"
        if kind is Kind.IRIS:
            return None if "/" in native.strip("/") and native[0] != "/" else "write user/job"
        return valid(name, kind, native)

    return aim(word, kind=None, cluster=cluster, clusters=clusters, validate_id=check)


def test_a_job_of_kubernetes_has_a_namespace():
    target = aimed_with_kubernetes("ml/train", LEONARDO, LOCAL, K8S)
    assert (target.ref, target.kind) == ("k8s/ml/train", Kind.KUBERNETES)
    assert target.guessed == "'ml/train' taken as k8s/ml/train: cluster k8s, kind kubernetes"
    assert aimed_with_kubernetes("4711", LEONARDO, K8S).kind is Kind.SLURM
    with pytest.raises(ConfigError, match="write namespace/name"):
        aimed_with_kubernetes("k8s/train", LEONARDO, K8S)


def test_where_a_namespace_may_be_a_user_both_are_named():
    with pytest.raises(Refused, match=r"k8s/ml/train \(kubernetes\), pond/ml/train \(iris\)"):
        aimed_with_kubernetes("ml/train", K8S, IRIS)
    assert aimed_with_kubernetes("/ml/train", K8S, IRIS).ref == "pond/ml/train"
    assert aimed_with_kubernetes("ml/train", K8S, IRIS, cluster="k8s").ref == "k8s/ml/train"


def test_no_cluster_at_all():
    with pytest.raises(ConfigError):
        aimed("4711")


@given(st.text(max_size=60))
def test_any_word_is_one_reading_or_one_line(word):
    try:
        target = aimed(word, LEONARDO, LOCAL)
    except JobmondError as refusal:
        assert "\n" not in str(refusal)
        assert str(refusal).isprintable()
        assert refusal.exit_code in (1, 2)
    else:
        assert valid(target.cluster, target.kind, target.native_id) is None


LAUNCHING = ClusterInfo("leonardo", "slurm", (Kind.SLURM, Kind.NEL, Kind.LAUNCHER))
HERE = ClusterInfo("local", "local", (Kind.LOCAL, Kind.NEL, Kind.LAUNCHER))


def launched(cluster, kind, native_id):
    """Forms like those of the real sources."""
    if kind is Kind.NEL:
        good = len(native_id) == 16 and set(native_id) <= set("0123456789abcdef")
    elif kind is Kind.LAUNCHER:
        good = native_id.startswith(("cicd_", "file:"))
    else:
        return valid(cluster, kind, native_id)
    return None if good else f"{native_id} is no {kind} job"


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("65f68ad6c803b542", Kind.NEL),
        ("cicd_1795968996253503257", Kind.LAUNCHER),
        ("4711", Kind.SLURM),
    ],
)
def test_the_form_of_an_id_tells_its_kind(word, kind):
    target = aim(word, kind=None, cluster=None, clusters=[LAUNCHING], validate_id=launched)
    assert (target.ref, target.kind) == (f"leonardo/{word}", kind)
    assert target.guessed == f"'{word}' taken as leonardo/{word}: cluster leonardo, kind {kind}"


def test_a_launcher_beside_makes_no_kind_of_a_number_a_guess():
    target = aim("4711", kind=None, cluster="leonardo", clusters=[LAUNCHING], validate_id=launched)
    assert target == Target("leonardo", Kind.SLURM, "4711")
    target = aim("4711", kind=None, cluster=None, clusters=[HERE], validate_id=launched)
    assert target.ref == "local/pid-4711"


def test_an_invocation_that_may_run_here_or_there_is_ambiguous():
    with pytest.raises(Refused, match=r"leonardo/65f6.*local/65f6"):
        aim(
            "65f68ad6c803b542",
            kind=None,
            cluster=None,
            clusters=[LAUNCHING, HERE],
            validate_id=launched,
        )
