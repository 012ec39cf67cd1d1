"""`[followups.KIND]`: what a person has run for a follow-up."""

import re
from datetime import timedelta
from typing import Literal

from pydantic import field_validator

from jobmond.settings.fields import Command, Interval, Table

FollowupKind = Literal["cleanup", "consolidate", "deep-probe", "zombie"]
WORDS = ("id", "kind", "ref", "cluster", "native_id", "path")
_WORD = re.compile(r"\{([a-z_]+)\}")


class FollowupCommand(Table):
    """A command that is run once for each follow-up of a kind, on this host and without a shell."""

    command: Command
    """A list of words; `{path} {ref} {cluster} {native_id} {id} {kind}` are the follow-up's."""
    timeout: Interval = timedelta(minutes=10)
    """It is ended after this."""

    @field_validator("command")
    @classmethod
    def _known(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if not command:
            raise ValueError("expected a program and its arguments")
        for name in _WORD.findall(" ".join(command)):
            if name not in WORDS:
                raise ValueError(f"{{{name}}} is none of {', '.join(WORDS)}")
        return command
