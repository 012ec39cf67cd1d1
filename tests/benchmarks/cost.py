"""What a program costs: processor time and memory, its own and of what it starts."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# What somebody would search an RL log for by hand.
NEEDLES = "grad_norm|reward|Error|out of memory"
JOBMONCTL = [sys.executable, "-m", "jobmond.cli.main"]


@dataclass(frozen=True)
class Cost:
    cpu_s: float
    rss_mib: float
    said: bytes


# A process remembers how large the one was that started it: a small one stands between.
_STARTER = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=False)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
sys.stderr.write(f"\\n{used.ru_utime + used.ru_stime} {used.ru_maxrss / 1024}")
"""


def cost(command: list[str], **env: str) -> Cost:
    """Runs it with its output into a pipe: to /dev/null grep stops at the first match."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _STARTER, *command],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "", **env},
    )
    cpu_s, rss_mib = done.stderr.rsplit(b"\n", 1)[1].split()
    return Cost(float(cpu_s), float(rss_mib), done.stdout)


def inspected(log: Path) -> Cost:
    return cost([*JOBMONCTL, "inspect", "--json", str(log)])


def searched(log: Path) -> Cost:
    return cost(["grep", "-caE", NEEDLES, str(log)], LC_ALL="C")


def main() -> None:
    """`python -m tests.benchmarks.cost LOG...`: a line of a table for each log."""
    for name in sys.argv[1:]:
        log = Path(name)
        ours, grep = inspected(log), searched(log)
        print(
            f"| {log.name} | {log.stat().st_size >> 20} MiB | {grep.cpu_s:.2f} s | "
            f"{ours.cpu_s:.2f} s | {ours.cpu_s / grep.cpu_s:.1f} | {ours.rss_mib:.0f} MiB |"
        )


if __name__ == "__main__":
    main()
