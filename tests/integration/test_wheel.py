"""The wheel: it builds from a clean tree and holds everything the programs need."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    """The wheel as `pip wheel` makes it, with the build backend that is already installed."""
    pytest.importorskip("hatchling", reason="the build backend, of the extra `dev`")
    folder = tmp_path_factory.mktemp("wheel")
    code = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(folder / done.stdout.split()[-1]) as archive:
        yield archive


def test_it_holds_the_migrations(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    assert "jobmond/_migrations/env.py" in names
    written = {path.name for path in (ROOT / "migrations/versions").glob("*.py")}
    packed = {Path(n).name for n in names if n.startswith("jobmond/_migrations/versions/")}
    assert written
    assert written <= packed


def test_it_holds_the_units(wheel: zipfile.ZipFile) -> None:
    units = {n for n in wheel.namelist() if n.startswith("jobmond/_systemd/")}
    assert units == {
        "jobmond/_systemd/jobmond.service",
        "jobmond/_systemd/jobmond-user.service",
    }


def test_it_holds_every_module_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = {n for n in wheel.namelist() if n.startswith("jobmond/")}
    modules = {str(p.relative_to(ROOT)) for p in (ROOT / "jobmond").rglob("*.py")}
    assert modules <= names
    assert not [n for n in wheel.namelist() if n.startswith(("tests/", "migrations/", "deploy/"))]
    assert not [n for n in names if "__pycache__" in n]


def test_it_names_its_programs_and_its_licence(wheel: zipfile.ZipFile) -> None:
    info = next(n.split("/")[0] for n in wheel.namelist() if ".dist-info/" in n)
    programs = wheel.read(f"{info}/entry_points.txt").decode()
    assert "jobmond = jobmond.__main__:main" in programs
    assert "jobmonctl = jobmond.cli.main:main" in programs
    metadata = message_from_bytes(wheel.read(f"{info}/METADATA"))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    assert f"{info}/licenses/LICENSE" in wheel.namelist()
