"""The far side's awk finds in a JSON file what the near side's sifter finds."""

import json
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobmond.analysis.harbor import TRIAL_WANTED
from jobmond.analysis.sifting import sifted
from jobmond.backends._trees.answer import parsed
from jobmond.backends._trees.sifting import ROOTS, program
from tests.trees import VERSIONS, harbor, result

AWKS = [
    command
    for command in (["gawk"], ["mawk"], ["busybox", "awk"], ["awk"])
    if shutil.which(command[0])
]
MARK = "m" * 32


def far(awk, kind, *documents):
    """What the program says of each document, None where it says that it is not whole."""
    fed = b"".join(
        b"%s %s %d\n%s\n" % (MARK.encode(), kind.encode(), i, raw.replace(b",", b"\n"))
        for i, raw in enumerate(documents)
    )
    said = subprocess.run(
        [*awk, program(MARK)], input=fed, capture_output=True, check=True, env={"LC_ALL": "C"},
        executable=shutil.which(awk[0]),
    )  # fmt: skip
    assert said.stderr == b""
    lines = said.stdout.split(b"\n")
    assert lines[0:-1:2] == [f"{MARK} {kind} {i}".encode() for i in range(len(documents))]
    return [parsed(line) for line in lines[1:-1:2]]


def counted(value):
    """Strings in lists are only counted, long ones are left out."""
    if isinstance(value, list):
        return [0 if isinstance(one, str) else counted(one) for one in value]
    if isinstance(value, dict):
        return {name: counted(one) for name, one in value.items()}
    return "" if isinstance(value, str) and len(json.dumps(value)) > 302 else value


@pytest.mark.parametrize("awk", AWKS, ids="-".join)
class TestEveryAwk:
    @pytest.mark.parametrize("version", VERSIONS)
    def test_every_version(self, awk, version):
        root = (harbor(version) / "result.json").read_bytes()
        assert far(awk, "root", root) == [counted(sifted([root], ROOTS["root"]))]
        trials = [path.read_bytes() for path in sorted(harbor(version).glob("*/result.json"))]
        wanted = [counted(sifted([raw], ROOTS["trial"])) for raw in trials]
        assert len(wanted) == 9
        assert far(awk, "trial", *trials) == wanted
        compact = [json.dumps(json.loads(raw)).encode() for raw in trials]
        assert far(awk, "trial", *compact) == wanted

    def test_megabytes_between_what_matters(self, awk):
        details = [{"ids": list(range(40_000)), "text": 'a, "b" {\n]\\' * 2000}] * 4
        document = result()
        document["agent_result"]["rollout_details"] = details
        for indent in (None, 4):
            raw = json.dumps(document, indent=indent).encode()
            (found,) = far(awk, "trial", raw)
            assert found == sifted([raw], ROOTS["trial"])

    def test_commas_in_strings(self, awk):
        texts = [",", ",,", "a,,b", ",\\,", ',",', "a,b,c"]
        raws = [json.dumps({"trial_name": text, "x": text}).encode() for text in texts]
        assert far(awk, "trial", *raws) == [{"trial_name": text} for text in texts]

    def test_what_is_not_whole(self, awk):
        raw = json.dumps(result()).encode()
        broken = [b"", b"{", b"null", b'{"a" 1}', b"}", b"[" * 200, b'\0\xff\n"', b"{" * 200_000]
        broken += [b'{"trial_name": "x]', *(raw[:i] for i in range(0, len(raw), 40))]
        assert far(awk, "trial", *broken) == [None] * len(broken)


def documents():
    names = st.sampled_from([*TRIAL_WANTED, "n_output_tokens", "n_episodes", "other", 'q"\\'])
    return st.dictionaries(names, st.recursive(
        st.none() | st.booleans() | st.integers(-10**12, 10**12) | st.floats(0, 1)
        | st.text('ab,"\\ {}[]:é\n\t', max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=10,
    ), max_size=6)  # fmt: skip


@pytest.mark.parametrize("awk", AWKS, ids="-".join)
@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(documents(), min_size=1, max_size=30), st.sampled_from([None, 4]), st.booleans())
def test_any_document(awk, every, indent, escaped):
    raws = [json.dumps(d, indent=indent, ensure_ascii=escaped).encode() for d in every]
    assert far(awk, "trial", *raws) == [counted(sifted([r], ROOTS["trial"])) for r in raws]
