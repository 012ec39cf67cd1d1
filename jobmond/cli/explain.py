"""`jobmonctl explain` and `schema`: what the rules say and what programs may rely on."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import timedelta
from typing import Any

import click

from jobmond.cli.session import Session, say, show_json, surface
from jobmond.cli.session import show as show_lines
from jobmond.errors import ConfigError
from jobmond.registry import rules
from jobmond.reports.choose import nearest
from jobmond.reports.schema import SCHEMAS
from jobmond.reports.schema import schema as the_schema
from jobmond.settings.paths import config_path


@click.command()
@click.argument("rule", required=False)
@surface
def explain(session: Session, rule: str | None) -> None:
    """Print a rule's logic, thresholds and sources; without RULE, every rule in one line."""
    known = list(rules)
    if rule is not None and rule not in known:
        raise ConfigError(
            f"no rule {rule!r}{nearest(rule, known)}; rules: {', '.join(known) or 'none'}"
        )
    chosen = _configured(session.env) if rule else {}
    texts = {name: _told(name, chosen.get(name, {})) for name in ([rule] if rule else known)}
    if session.as_json:
        show_json(texts)
    elif rule is not None:
        show_lines([texts[rule]])
    else:
        show_lines([_in_short(name, text) for name, text in texts.items()])


def _told(name: str, chosen: Mapping[str, Any]) -> str:
    """The rule's own words, then its thresholds under the names that the configuration has."""
    rule: Any = rules[name](**chosen)
    said: str = rule.explain()
    if not is_dataclass(rule) or not fields(rule):
        return said
    usual = rules[name]()
    lines = [_threshold(usual, rule, item.name) for item in fields(rule)]
    return "\n".join([said, f"Thresholds ([rules.{name}] of the configuration):", *lines])


def _threshold(usual: object, rule: object, name: str) -> str:
    value, default = getattr(rule, name), getattr(usual, name)
    changed = f"  (yours; the default is {_toml(default)})" if value != default else ""
    return f"  {name} = {_toml(value)}{changed}"


def _toml(value: object) -> str:
    """A value as one would write it into the configuration."""
    if isinstance(value, timedelta):
        return f'"{value.total_seconds():.0f}s"'
    if isinstance(value, tuple | list | set | frozenset):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _configured(env: Mapping[str, str]) -> Mapping[str, Mapping[str, Any]]:
    """The thresholds that the configuration here changes; none where it cannot be used."""
    try:
        path = config_path(None, env)
        if path is None and not any(key.startswith("JOBMOND_RULES__") for key in env):
            return {}
        from jobmond.settings import load  # slow: it checks everything

        return load(path, env).settings.rules
    except ConfigError as error:
        say(f"these are the defaults, because the configuration cannot be used: {error}")
        return {}


def _in_short(name: str, text: str) -> str:
    """The rule's first sentence, which may be broken over lines, behind its name once."""
    said = " ".join(text.strip().partition("\n\n")[0].split())
    sentence = said if said.startswith(name) else f"{name}: {said}"
    first = re.split(r"(?<=\w\w\.) (?=[A-Z])|(?<=:) (?=- )", sentence, maxsplit=1)[0]
    return f"{first} …" if first.endswith(":") else first


@click.command()
@click.argument("contract", required=False, default="status", metavar="[status|inspect|news]")
@surface
def schema(session: Session, contract: str) -> None:
    """Print the JSON Schema of a contract."""
    if contract not in SCHEMAS:
        raise ConfigError(
            f"no contract {contract!r}{nearest(contract, SCHEMAS)}; one of {', '.join(SCHEMAS)}"
        )
    show_json(the_schema(contract), indent=2)
