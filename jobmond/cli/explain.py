"""`jobmonctl explain` and `schema`: what the rules say and what programs may rely on."""

import re

import click

from jobmond.cli.session import Session, show_json, surface
from jobmond.cli.session import show as show_lines
from jobmond.errors import ConfigError
from jobmond.registry import rules
from jobmond.reports.choose import nearest
from jobmond.reports.schema import SCHEMAS
from jobmond.reports.schema import schema as the_schema


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
    texts = {name: rules[name]().explain() for name in ([rule] if rule else known)}
    if session.as_json:
        show_json(texts)
    elif rule is not None:
        show_lines([texts[rule]])
    else:
        show_lines([_in_short(name, text) for name, text in texts.items()])


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
