"""Registry files written back, beside programs that write them too."""

import fcntl
import json
import os
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jobmond.analysis.activejobs import parsed
from jobmond.errors import SinkRefusal, SinkRetry
from jobmond.registry import sinks
from jobmond.sinks import registry_file
from jobmond.sinks.registry_file import UnusableFile, make_stand, read_registry, text_of

TEXT = '[\n  {"id": "1", "x": 1.50},\n  {"id": "2", "last_status": "PENDING"}\n]\n'


def key(native_id: str) -> str:
    return parsed(json.dumps([{"id": native_id}]))[0].key


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "active_jobs.json"
    path.write_text(TEXT)
    path.chmod(0o640)
    return path


class Words:
    """What the entries should say, and what was said to stand."""

    def __init__(self, **wanted: str | None) -> None:
        self.says = {key(native_id): word for native_id, word in wanted.items()}
        self.stands: list[tuple[str, Mapping[str, str | None]]] = []

    async def wanted(self, path: str) -> Mapping[str, str | None]:
        return self.says

    async def stood(self, path: str, written: Mapping[str, str | None]) -> None:
        self.stands.append((path, written))


def meanwhile(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Another program acts once our draft is written, right before it takes the file's place."""
    real, done = registry_file._draft, []

    def draft(*args: Any) -> Path:
        made = real(*args)
        if not done:
            done.append(act())
        return made

    monkeypatch.setattr(registry_file, "_draft", draft)


async def test_statuses_are_written_and_what_ended_goes(file: Path) -> None:
    words = Words(**{"1": None, "2": "RUNNING", "3": None})
    await sinks["registry-file"](words, path=file).send([])
    assert file.read_text() == '[\n  {"id": "2", "last_status": "RUNNING"}\n]\n'
    assert words.stands == [(str(file), {key("1"): None, key("2"): "RUNNING"})]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(os.listdir(file.parent)) == ["active_jobs.json", "active_jobs.json.lock"]


async def test_writing_again_changes_nothing(file: Path) -> None:
    sink = sinks["registry-file"](Words(**{"2": "RUNNING"}), path=file)
    await sink.send([])
    before = file.stat()
    await sink.send([])
    after = file.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


async def test_a_written_file_looks_changed(file: Path) -> None:
    os.utime(file, ns=(1, 1))
    make_stand(file, {key("2"): "RUNNING"})
    assert file.stat().st_mtime_ns != 1


@pytest.mark.parametrize("text", [TEXT[:40], "", "null", "\x00"])
def test_a_truncated_file_is_left_as_it_is(file: Path, text: str) -> None:
    file.write_text(text)
    before = file.stat()
    assert make_stand(file, {key("1"): None}) == {}
    assert file.read_text() == text
    assert file.stat().st_mtime_ns == before.st_mtime_ns


def test_a_file_that_is_gone_is_not_made_anew(file: Path) -> None:
    file.unlink()
    assert make_stand(file, {key("1"): None}) == {}
    assert not file.exists()


def test_a_lock_that_somebody_holds_is_waited_for_and_then_respected(file: Path) -> None:
    lock = file.with_name("active_jobs.json.lock")
    pauses: list[float] = []
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(SinkRetry, match=r"active_jobs\.json\.lock is held by another"):
            make_stand(file, {key("1"): None}, pause=pauses.append)
        assert file.read_text() == TEXT

        def let_go(_: float) -> None:
            fcntl.flock(held, fcntl.LOCK_UN)

        assert make_stand(file, {key("1"): None}, pause=let_go) == {key("1"): None}
    assert len(pauses) == 60


def test_a_lock_file_that_its_holder_removes_is_taken_anew(file: Path) -> None:
    lock = file.with_name("active_jobs.json.lock")
    held = lock.open("w")
    fcntl.flock(held, fcntl.LOCK_EX)

    def let_go(_: float) -> None:
        lock.unlink()
        held.close()

    assert make_stand(file, {key("1"): None}, pause=let_go) == {key("1"): None}
    assert lock.exists()


@pytest.mark.parametrize("in_place", [True, False])
def test_an_entry_that_was_added_meanwhile_is_kept(
    file: Path, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    more = [*json.loads(TEXT), {"id": "3"}]

    def add() -> None:
        other = file if in_place else file.with_name("other")
        other.write_text(json.dumps(more))
        other.replace(file)

    meanwhile(monkeypatch, add)
    make_stand(file, {key("1"): None, key("2"): "RUNNING"})
    assert json.loads(file.read_text()) == [{"id": "2", "last_status": "RUNNING"}, {"id": "3"}]


def test_what_is_written_into_the_file_that_we_replace_is_not_lost(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program opened the file before our rename and writes into it afterwards."""
    theirs = file.open("r+")
    real, done = registry_file._sync, []

    def late(folder: Path) -> None:
        real(folder)
        if not done:
            done.append(theirs.write('[{"id": "2", "last_status": "PENDING"}, '))
            theirs.flush()

    def rest(_: float) -> None:
        theirs.write('{"id": "3"}]')
        theirs.truncate()
        theirs.close()

    monkeypatch.setattr(registry_file, "_sync", late)
    make_stand(file, {key("1"): None, key("2"): "RUNNING"}, pause=rest)
    assert json.loads(file.read_text()) == [{"id": "2", "last_status": "RUNNING"}, {"id": "3"}]


def test_two_writers_that_take_the_lock_lose_nothing(file: Path) -> None:
    """One adds jobs as an agent does, we remove and relabel; nothing sleeps between."""
    file.write_text("[]")
    lock = file.with_name("active_jobs.json.lock")

    def agent() -> None:
        for n in range(40):
            with lock.open("w") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                jobs = json.loads(file.read_text())
                file.write_text(json.dumps([*jobs, {"id": str(n), "mine": n}]))

    other = threading.Thread(target=agent)
    other.start()
    changes = {key(str(n)): None if n % 2 else "RUNNING" for n in range(40)}
    while other.is_alive():
        make_stand(file, changes)
    other.join()
    make_stand(file, changes)
    assert json.loads(file.read_text()) == [
        {"id": str(n), "mine": n, "last_status": "RUNNING"} for n in range(0, 40, 2)
    ]


def test_a_file_that_never_stands_still_is_tried_again_later(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, count = registry_file._draft, []

    def draft(*args: Any) -> Path:
        count.append(1)
        file.write_text(json.dumps([{"id": "1", "n": len(count)}]))
        return real(*args)

    monkeypatch.setattr(registry_file, "_draft", draft)
    with pytest.raises(SinkRetry, match="written by another program all the time"):
        make_stand(file, {key("1"): "RUNNING"})
    assert not list(file.parent.glob(".*tmp"))


def test_a_folder_that_cannot_be_written_is_tried_again_later(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: Any) -> Path:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(registry_file, "_draft", refused)
    with pytest.raises(SinkRetry, match="Permission denied"):
        make_stand(file, {key("1"): None})
    assert file.read_text() == TEXT


def test_a_link_stays_a_link(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(file)
    make_stand(link, {key("1"): None})
    assert link.is_symlink()
    assert json.loads(file.read_text()) == [{"id": "2", "last_status": "PENDING"}]


async def test_a_file_system_that_does_not_answer_is_not_waited_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no second write is begun beside the one that hangs."""
    release, begun = threading.Event(), []
    real = registry_file.make_stand

    def hanging(*args: Any) -> Any:
        begun.append(args)
        release.wait(60)
        return real(*args)

    monkeypatch.setattr(registry_file, "make_stand", hanging)
    words = Words(**{"2": "RUNNING"})
    sink = registry_file.RegistryFileSink(words, path=file, patience_s=0.01)
    for _ in range(3):
        with pytest.raises(SinkRetry, match="its file system does not answer"):
            await sink.send([])
    assert len(begun) == 1
    words.says = {key("2"): "FAILED"}
    release.set()
    sink._patience_s = 60
    await sink.send([])
    assert [written for _, written in words.stands] == [{key("2"): "RUNNING"}, {key("2"): "FAILED"}]
    assert json.loads(file.read_text())[1]["last_status"] == "FAILED"


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UnusableFile, match="no regular file"):
        read_registry(tmp_path / "pipe")
    with pytest.raises(SinkRefusal, match="no regular file"):
        make_stand(tmp_path / "pipe", {})
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(5 * 2**20)
    with pytest.raises(UnusableFile, match="larger than"):
        read_registry(big)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns other users' files")
def test_another_user_s_file_stays_theirs_and_their_lock_too(file: Path, tmp_path: Path) -> None:
    os.chown(file, 4711, 4712)
    make_stand(file, {key("1"): None})
    assert (file.stat().st_uid, file.stat().st_gid) == (4711, 4712)
    lock = file.with_name("active_jobs.json.lock")
    assert (lock.stat().st_uid, stat.S_IMODE(lock.stat().st_mode)) == (4711, 0o640)
    link = tmp_path / "link"
    link.symlink_to(file)
    with pytest.raises(SinkRefusal, match="a link to another user's file"):
        make_stand(link, {key("2"): None})


def test_bytes_that_are_no_text_are_one_line() -> None:
    with pytest.raises(ValueError, match="not UTF-8 in line 2"):
        text_of(b"[\n\xff]")
