"""What jobs leave beside their log: checkpoints, a trainer's own record of its end, scores.

Each folder costs one listing, and one for each of its newest checkpoints; nothing is walked.
"""

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from jobmond.analysis.banked import LATEST, is_step, tracked_step
from jobmond.analysis.scores import Score, bundle_scores, lm_eval_scores, results_scores
from jobmond.analysis.visible import readable
from jobmond.model.observation import Unavailable
from jobmond.model.trials import Completion, OutputAsk, Place

_NEWEST = 40  # checkpoints of one folder that are looked into
_FILE_BYTES = 262_144

_CODE = r"""
LC_ALL=C
export LC_ALL
want=$1
shift
for dir; do
  [ -d "$dir" ] || continue
  printf '\n{mark} dir %s\n' "$dir"
  case $want in *b*)
    for name in {latest}; do
      if [ -f "$dir/$name" ]; then
        printf '{mark} latest %s\n' "$(head -c 40 -- "$dir/$name" | tr -d '\n')"
      fi
    done
    ls -1 -- "$dir" 2>/dev/null | head -n 100000 | grep -aE '^[A-Za-z_]*[_-]?[a-z0-9_]*[0-9]+$' |
      sed 's/^\(.*[^0-9]\)\([0-9]*\)$/\2 \1\2/' | sort -n | tail -n {newest} |
      while IFS=' ' read -r number name; do
        [ -d "$dir/$name" ] || continue
        printf '{mark} step %s %s\n' "$name" \
          "$(ls -1 -- "$dir/$name" 2>/dev/null | head -n 200 | tr '\n' '/')"
      done ;;
  esac
  case $want in *c*)
    if [ -f "$dir/trainer_log.jsonl" ]; then
      printf '{mark} file trainer_log.jsonl\n'
      tail -c 16384 -- "$dir/trainer_log.jsonl"
    fi
    if [ -f "$dir/trainer_state.json" ]; then
      printf '\n{mark} file trainer_state.json\n'
      head -c 16384 -- "$dir/trainer_state.json"
      echo
      tail -c 16384 -- "$dir/trainer_state.json"
    fi ;;
  esac
  case $want in *s*)
    for file in "$dir"/results.yml "$dir"/artifacts/results.yml "$dir"/eval-*.json \
        "$(ls -1t -- "$dir"/results_*.json "$dir"/*/results_*.json 2>/dev/null | head -n 1)"; do
      [ -f "$file" ] || continue
      printf '\n{mark} file %s\n' "${{file##*/}}"
      head -c {file_bytes} -- "$file"
    done ;;
  esac
done
printf '\n{mark} whole\n'
"""


def outputs_script(mark: str, asks: Sequence[OutputAsk], *, each_s: int) -> bytes:
    """The script for all asks, one after the other."""
    code = _CODE.format(mark=mark, latest=" ".join(LATEST), newest=_NEWEST, file_bytes=_FILE_BYTES)
    lines = [
        f"outputs_code={shlex.quote(code)}",
        f'outputs_limit="timeout -k 1 {each_s}"',
        "command -v timeout >/dev/null 2>&1 || outputs_limit=",
    ]
    for index, ask in enumerate(asks):
        lines += [
            f"printf '\\n{mark} ask {index}\\n'",
            f'$outputs_limit /bin/sh -c "$outputs_code" sh {ask.want} {shlex.join(ask.paths)} '
            "2>/dev/null </dev/null",
        ]
    return ("\n".join(lines) + "\n").encode()


class Found:
    """What the script printed about one ask, so far."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.completion: Completion | None = None
        self.scores: dict[str, Score] = {}
        self.whole = False

    def take(self, word: str, rest: str, body: bytes) -> None:
        if word == "dir":
            self.places.append(Place(rest, {}))
        elif word == "whole":
            self.whole = True
        elif word == "file":
            self._file(rest, body)
        elif self.places:
            self._checkpoint(word, rest)

    def _checkpoint(self, word: str, rest: str) -> None:
        place = self.places[-1]
        if word == "latest":
            latest = tracked_step(rest)
            self.places[-1] = Place(place.path, place.steps, latest, frozenset(LATEST[:1]))
        elif word == "step":
            name, _, inside = rest.partition(" ")
            if is_step(name):
                steps = {**place.steps, name: frozenset(filter(None, inside.split("/")))}
                self.places[-1] = Place(place.path, steps, place.latest, place.names)

    def _file(self, name: str, body: bytes) -> None:
        if name.startswith("trainer_"):
            said = completion(readable(body))
            if self.completion is None or said.last_step is not None:
                self.completion = said
            return
        for score in _scores(name, body):
            self.scores.setdefault(score.name, score)


def found_outputs(stdout: bytes, mark: str, count: int) -> list[Found | Unavailable]:
    """One answer for each ask; what did not arrive whole is unavailable."""
    answers = [Found() for _ in range(count)]
    index = -1
    for word, rest, body in _lines(stdout, mark.encode()):
        if word == "ask":
            index = int(rest) if rest.isdigit() and len(rest) < 9 else -1
        elif 0 <= index < count:
            answers[index].take(word, rest, body)
    silent = Unavailable("the look at its output did not come to its end")
    return [one if one.whole else silent for one in answers]


def _lines(stdout: bytes, mark: bytes) -> Iterator[tuple[str, str, bytes]]:
    for piece in (b"\n" + stdout).split(b"\n" + mark + b" ")[1:]:
        head, _, body = piece.partition(b"\n")
        word, _, rest = readable(head).partition(" ")
        yield word, rest, body


_STEP = re.compile(r'"(?:global_step|current_steps)"\s*:\s*(\d{1,12})')
_TOTAL = re.compile(r'"(?:max_steps|total_steps)"\s*:\s*(\d{1,12})')
_NAN_RANKS = re.compile(r'"nan_ranks"\s*:\s*(\d{1,6})')
_NAN_LOSS = re.compile(r'"loss"\s*:\s*"?NaN', re.IGNORECASE)


def completion(text: str) -> Completion:
    """What the end of a `trainer_log.jsonl`, or both ends of a `trainer_state.json`, say."""
    steps, totals = _STEP.findall(text), _TOTAL.findall(text)
    ranks = [int(found) for found in _NAN_RANKS.findall(text)]
    losses = re.findall(r'"loss"\s*:\s*"?[^,}\s]+', text)
    nan = bool(losses) and _NAN_LOSS.match(losses[-1]) is not None
    return Completion(
        int(steps[-1]) if steps else None,
        int(totals[-1]) if totals else None,
        max([*ranks, int(nan)]),
    )


def _scores(name: str, body: bytes) -> list[Score]:
    document = _document(name, body)
    if name == "results.yml":
        return results_scores(document)
    return bundle_scores(document) if name.startswith("eval-") else lm_eval_scores(document)


def _document(name: str, body: bytes) -> Any:
    try:
        return yaml.safe_load(body) if name.endswith(".yml") else json.loads(body)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
