"""Names that want to be something else: a state, a command, a column, a path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from wcwidth import wcswidth

from tests.live.lab import Lab, Submission, User
from tests.live.product import MakeProduct, Product

pytestmark = pytest.mark.live

MARK = "/tmp/jobmond-was-fooled"
NAMES = {
    "column": "FAILED|x",
    "state": "TIMEOUT",
    "row": "1|FAILED|FAILED|0:9",
    "command": f"$(touch {MARK})",
    "backticks": f"`touch {MARK}`",
    "shell": f"'; touch {MARK}; '",
    "tab": "a\tFAILED\tb",
    "newline": "a\nFAILED\n2|FAILED|b",
    "return": "a\rFAILED",
    "escape": "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "eight-bit": "\x9b31mred",
    "cjk": "訓練ジョブ・한국어",
    "emoji": "🚀👩🏽‍🔬 launch",
    "combining": "e\u0301\u0301 a\u200b\u202egnp",
    "bytes": b"\xff\xfe\xf0\x28 caf\xe9".decode(errors="surrogateescape"),
    "path": "../../../etc/passwd",
    "option": "--help",
    "blanks": "  two  blanks  ",
    "equals": "x JobState=FAILED ExitCode=9:0",
    "quote": 'say "no" \\',
    "long": "x" * 400,
}
FORBIDDEN = {chr(n) for n in range(0x20)} - {"\n"} | {chr(n) for n in range(0x7F, 0xA0)}
FORBIDDEN |= {"\u202e", "\u200b"}


@pytest.fixture
def watched(
    lab: Lab, user: User, make_product: MakeProduct
) -> Iterator[tuple[Product, dict[str, str]]]:
    """One job of each name: every second one has failed, the others run."""
    codes = [3 * (n % 2) for n in range(len(NAMES))]
    jobs = lab.sbatch_many(
        user,
        [
            Submission("exit 3" if code else "sleep 600", (f"--job-name={name}",))
            for name, code in zip(NAMES.values(), codes, strict=True)
        ],
    )
    ids = dict(zip(NAMES, jobs, strict=True))
    for job, code in zip(jobs, codes, strict=True):
        if code:
            lab.wait_for_accounting(job, "FAILED")
        else:
            lab.wait_for_state(job, "RUNNING")
    product = make_product(lab, user)
    product.add(*jobs)
    product.sweep_well(2)
    yield product, ids
    lab.scancel("-u", user.name)


def forbidden_in(text: str) -> set[str]:
    return {c for c in text if c in FORBIDDEN or 0xD800 <= ord(c) < 0xE000}


def test_no_name_becomes_anything_but_a_name(watched: tuple[Product, dict[str, str]]) -> None:
    product, ids = watched
    expected = {job: "FAILED" if n % 2 else "RUNNING" for n, job in enumerate(ids.values())}
    assert product.states() == expected
    assert not Path(MARK).exists()
    assert product.cluster()["status"] == "ok"
    told = [event.ref for event in product.events()]
    assert sorted(told) == sorted(f"lab/{job}" for job, s in expected.items() if s == "FAILED")
    assert all("FAILED (exit code 3)" in event.whole["title"] for event in product.events())

    # What people look at: no control characters, and columns that stand in line.
    for words in (["status"], ["history"], ["events"], ["show", ids["escape"]]):
        text = product.ctl(*words).checked().out
        assert forbidden_in(text) == set(), words
    text = product.ctl("status").checked().out
    assert set(table_widths(text)) == {max(table_widths(text))}
    assert "訓練ジョブ" in text

    # What programs read: names survive where they can be text at all.
    names = {job["native_id"]: job["name"] for job in product.status()["jobs"]}
    for kind in ("state", "command", "shell", "cjk", "path", "option", "equals"):
        assert names[ids[kind]] == NAMES[kind]

    # Files: inside their folder, with tame names, whole.
    entries = product.entries()
    assert len(entries) == list(expected.values()).count("FAILED")
    for path in entries:
        assert path.resolve().is_relative_to(product.agent_logs.resolve())
        assert len(path.relative_to(product.agent_logs).parts) == 2
        assert path.name.isascii()
        assert path.name.isprintable()
        assert not set(path.name) & set(" '\"`$|;\\")
        assert forbidden_in(path.read_text()) <= {"\t"}
    assert forbidden_in(product.journal()) <= {"\t"}

    # By name, where it is unique, whatever it looks like.
    for kind in ("state", "option", "cjk"):
        shown = json.loads(product.ctl("show", "--json", "--", NAMES[kind]).checked().out)
        assert shown["native_id"] == ids[kind]


def table_widths(text: str) -> list[int]:
    """Display width of every line that belongs to a table of the report."""
    return [wcswidth(line) for line in text.splitlines() if line[:1] in set("│┌├└╭╰╞┬")]
