"""The units for systemd, with the path of the installed program."""

import shutil
from pathlib import Path

import jobmond
from jobmond.errors import ConfigError, Refused

_SITE = "@jobmond@"
_HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - names, not files


def units() -> Path:
    """The folder of the units: inside an installed package, else in the source tree."""
    package = Path(jobmond.__file__).parent
    installed = package / "_systemd"
    return installed if installed.is_dir() else package.parent / "deploy/systemd"


def rendered(program: str, *, user: bool) -> str:
    """The unit that starts `program`, which is a path or a name on PATH.

    Raises:
        ConfigError: there is no such program.
        Refused: the service of the host could not see the program where it is.
    """
    found = shutil.which(program)
    if found is None:
        raise ConfigError(f"{program} is no program: call jobmond by its path")
    path = str(Path(found).absolute())
    hidden = next((h for h in _HIDDEN if Path(path).is_relative_to(h)), None)
    if hidden and not user:
        raise Refused(
            f"{path} is hidden from a service of the host, as all of {hidden}: install jobmond "
            "elsewhere, such as into /opt/jobmond, or use `jobmond unit --user`"
        )
    name = "jobmond-user.service" if user else "jobmond.service"
    return (units() / name).read_text(encoding="utf-8").replace(_SITE, _quoted(path))


def _quoted(path: str) -> str:
    """One word of a command line of systemd, where `%` and `$` mean something."""
    text = path.replace("%", "%%").replace("$", "$$")
    if not any(character in text for character in " \t\"'\\;"):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
