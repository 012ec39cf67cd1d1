"""No secret leaves the log it stands in: not in entries, database, news, reports or the journal.

The corpus is that of the masking's own tests; every shape of it is put wherever text of a job can
come from: its name, command line, comment, folders, reason, message, log and dump of environment.
"""

import json
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from jobmond.desk.answers import Whole, in_full
from jobmond.model.observation import Examined, LogPart, LogTail, Read
from jobmond.model.state import State
from jobmond.reports.document import job_object, status_document
from jobmond.sinks.agent_log import AgentLogSink
from jobmond.sinks.file import FileSink
from tests.integration.host import Host, until
from tests.integration.test_sweep import Scene
from tests.unit.builders import NOW, seen
from tests.unit.test_mask import KEY, SHAPES

LEAST = 7  # shorter ones stand in ordinary words


def secrets(text: str, masked: str) -> list[str]:
    """The parts of `text` that `masked` hides."""
    shape = "(.+?)".join(re.escape(part) for part in masked.split("****"))
    found = re.fullmatch(shape, text, re.DOTALL)
    assert found is not None, (text, masked)
    return [part for part in found.groups() if len(part) >= LEAST and not part.isdigit()]


CORPUS = [(text, hidden) for text, masked in SHAPES if (hidden := secrets(text, masked))]
KEY_LINES = [line for line in KEY.split("\n") if not line.startswith("-----") and line != "after"]
EVERY = sorted({one for _, hidden in CORPUS for one in hidden} | set(KEY_LINES))


def leaks(data: bytes) -> list[str]:
    """Secrets in `data`, in any of the forms in which JSON or a database may hold them."""
    forms = {one: {one, json.dumps(one)[1:-1], one.replace("'", "''")} for one in EVERY}
    return [one for one, held in forms.items() if any(form.encode() in data for form in held)]


def log_of(text: str) -> bytes:
    """A failing job's log that shows `text` in every way."""
    return (
        f"starting {text}\n{KEY}\n{text}\r\x1b[31m{text}\x1b[0m\n"
        f"Traceback (most recent call last):\n"
        f'  File "train.py", line 3, in main\n    run("""{text}""")\n'
        f"ValueError: refused, sent {text}\n"
        f"environment:\n{text}\n"
    ).encode()


def test_the_corpus_is_one() -> None:
    assert len(CORPUS) > 40
    assert leaks(log_of(CORPUS[0][0])) != []


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.store.close()


def sightings(state: State, **more: object) -> dict[str, object]:
    found = {}
    for number, (text, _) in enumerate(CORPUS, 1):
        words = dict.fromkeys(("name", "command", "comment", "reason", "message", "progress"), text)
        found[f"_{number}"] = seen(state, **(words | more))
    return found


def logs() -> dict[str, Read[LogTail]]:
    found = {}
    for number, (text, _) in enumerate(CORPUS, 1):
        data = log_of(text)
        parts = (LogPart(0, data, 1),)
        beside = Examined("/l/beside", len(data), parts)
        own = Examined("/l/own", len(data), parts)
        tail = LogTail("/l/own", len(data), 1, NOW, 0, data, examined=(own, beside))
        found[str(number)] = Read(tail, NOW)
    return found


async def test_every_secret_in_every_text_of_a_job(scene: Scene, tmp_path: Path) -> None:
    for number in range(1, len(CORPUS) + 1):
        scene.add(str(number))
    scene.far.logs = logs()
    entries, news = tmp_path / "agent_logs", tmp_path / "news.jsonl"
    with capture_logs() as journal:
        await scene.sweep(**sightings(State.RUNNING))
        await scene.sweep(**sightings(State.FAILED, exit_code=1, ended_at=NOW))
        for sink, name in (
            (AgentLogSink(root=entries), "agent_log"),
            (FileSink(path=news), "news"),
        ):
            due = scene.store.due(name, scene.clock.now(), 10_000)
            assert len(due) >= len(CORPUS)
            await sink.send([_relative(d) for d in due] if name == "agent_log" else due)
    told = scene.store.events(limit=10_000)
    now = scene.clock.now()
    jobs = scene.store.jobs(recent_since=NOW)
    assert {job.state for job in jobs} == {State.FAILED}
    shown = [
        in_full(Whole(job, False, scene.store.transitions(job.id), [job], []), job_object(job, now))
        for job in jobs
    ]
    report = status_document(jobs, scene.store.clusters(now), daemon={"running": True}, now=now)
    said = {
        "journal": repr(journal),
        "events": repr(told),
        "report": json.dumps(report),
        "show": json.dumps(shown),
        "failures": repr(scene.store.failures.since(NOW.replace(year=2000), limit=9999)),
    }
    assert {name: leaks(text.encode()) for name, text in said.items()} == {
        name: [] for name in said
    }
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > len(CORPUS)
    assert {str(path): found for path in files if (found := leaks(path.read_bytes()))} == {}
    assert not [path for path in files if any(one in path.name for one in EVERY)]


def _relative(delivery):
    from dataclasses import replace

    body = dict(delivery.body)
    body["path"] = body["path"].removeprefix("/agent_logs/")
    return replace(delivery, body=body)


def test_nothing_of_a_process_that_prints_them_all_is_in_any_file_but_its_log(
    tmp_path: Path,
) -> None:
    program = tmp_path / "fails.py"
    program.write_text(
        "import os, sys\n"
        f"for text in {[text for text, _ in CORPUS]!r} + [{KEY!r}]:\n"
        "    print(text, file=sys.stderr)\n"  # all through one pipe: nothing interleaves
        "for name, value in sorted(os.environ.items()):\n"
        "    print(f'export {name}={value}', file=sys.stderr)\n"
        f"raise ValueError({CORPUS[0][0]!r} + ' and ' + sys.argv[1])\n"
    )
    environment = {}
    for number, (text, hidden) in enumerate(CORPUS):
        environment[f"SETTING_{number}"] = text
        plain = [one for one in hidden if not re.search(r"\s", one)]
        environment |= {f"MY_{number}_{nth}_TOKEN": one for nth, one in enumerate(plain)}
    host = Host(tmp_path / "home", extra=environment)
    host.home.mkdir(exist_ok=True)
    daemon = host.daemon()
    try:
        words = [text for text, _ in CORPUS[:20]]
        done = host.ctl(
            "run", "--name", CORPUS[1][0], "--", sys.executable, str(program), shlex.join(words)
        )
        assert done.returncode == 1
        until(lambda: [n for n in host.news() if n["after"] == "FAILED"], "the failure is told")
        until(lambda: list(host.state.rglob("INDEX.md")), "the entry is written")
        [job] = host.status()["jobs"]
        assert job["diagnosis"]["cause"] == "python-exception"
        shown = host.ctl("show", job["ref"]).stdout + host.ctl("show", "--json", job["ref"]).stdout
        seen_log = host.ctl("logs", job["ref"], "-n", "500").stdout
        listed = host.ctl("failures").stdout + host.ctl("failures", "--json").stdout
        assert "python-exception" in listed
        assert leaks((shown + seen_log + listed).encode()) == []
    finally:
        daemon.stop()
        host.close()
    files = [path for path in host.home.rglob("*") if path.is_file()]
    own = {path for path in files if path.parent.name == "runs" and path.suffix == ".log"}
    assert len(own) == 1
    assert leaks(own.pop().read_bytes()) != []
    rest = [path for path in files if not (path.parent.name == "runs" and path.suffix == ".log")]
    names = {path.name for path in rest}
    assert {"jobmond.db", "news.jsonl", "report.json", "journal-1", "INDEX.md"} <= names
    assert {path.name: found for path in rest if (found := leaks(path.read_bytes()))} == {}
