"""Writes an agentic RL training log of any size: mostly engine and trial chatter, a record a step.

    python -m tests.benchmarks.rl_log 1GiB >big.out
    python -m tests.benchmarks.rl_log 1GiB trials oom >failed.out

`trials` adds what an agentic run says of trials that ran out of time or context, two tracebacks a
step; `oom` a CUDA OOM at the end. The same arguments give the same bytes.
"""

import json
import random
import sys
from collections.abc import Iterator

STEP_BYTES = 400_000  # of chatter between two records
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_ACTOR = "\x1b[36m(skyrl_entrypoint pid=8444)\x1b[0m "
_HEAD = "\x1b[32m2026-07-14 09:{m:02d}:{s:02d}.{ms:03d}\x1b[0m | \x1b[1m\x1b[32mINFO    \x1b[0m | "
_SAYS = "\x1b[36mskyrl_train.trainer\x1b[0m:\x1b[36m{who}\x1b[0m:\x1b[36m{line}\x1b[0m - "


def said(rng: random.Random, who: str, text: str) -> str:
    """One line as loguru writes it inside a Ray actor."""
    head = _HEAD.format(m=rng.randrange(60), s=rng.randrange(60), ms=rng.randrange(1000))
    return f"{_ACTOR}{head}{_SAYS.format(who=who, line=rng.randrange(2000))}\x1b[1m{text}\x1b[0m\n"


def record(rng: random.Random, step: int) -> dict[str, float]:
    """The numbers of a healthy step."""
    numbers: dict[str, float] = {
        "policy/policy_entropy": 0.4 - step * 1e-5 + rng.random() * 0.01,
        "policy/policy_loss": rng.uniform(-0.05, 0.05),
        "policy/raw_grad_norm": 0.02 + rng.random() * 0.01,
        "policy/ppo_clip_ratio": 0.0,
        "policy/tis/imp_ratio_mean": 0.95 + rng.random() * 0.02,
        "policy/log_ratio_abs_mean": 0.012,
        "policy/log_ratio_abs_max": 0.31,
        "reward/avg_raw_reward": rng.random(),
        "reward/avg_pass_at_8": rng.random(),
        "timing/step": 600 + rng.random(),
        "trainer/global_step": step,
    }
    for place in range(60):
        numbers[f"timing/part_{place:02d}"] = rng.random()
    return dict(sorted(numbers.items()))


def chatter(rng: random.Random) -> str:
    """One line that says nothing about training."""
    kind = rng.randrange(5)
    if kind == 0:
        return (
            f"\x1b[36m(AsyncVLLMInferenceEngine pid={rng.randrange(9999)}, ip=10.0.0.2)\x1b[0m INFO"
            f" 07-14 09:10:00 [loggers.py:248] Engine 000: Avg prompt throughput: "
            f"{rng.random():.1f} tokens/s, Running: {rng.randrange(64)} reqs, Waiting: 0 reqs, "
            "GPU KV cache usage: "
            f"{rng.randrange(100)}.1%, Prefix cache hit rate: 12.0%\n"
        )
    if kind == 1:
        return (
            f"\x1b[36m(vLLMHttpServer pid={rng.randrange(9999)})\x1b[0m INFO:     10.0.0.1:"
            f'{rng.randrange(60000)} - "POST /v1/chat/completions HTTP/1.1" 200 OK\n'
        )
    if kind == 2:
        return said(rng, "run", f"Trial task_{rng.getrandbits(40):x}: running agent...")
    if kind == 3:
        return said(rng, "generate", f"Started: 'generate' for batch {rng.randrange(999)}")
    return f"  {rng.getrandbits(320):x} {rng.getrandbits(320):x}\n"


def trace(who: str, said: str) -> str:
    """A traceback as Ray prints it."""
    frames = ("trainer.py", "generator.py", "trial.py")
    lines = [
        "Traceback (most recent call last):",
        *(f'  File "/w/proj/{name}", line 88, in run\n    await self.step()' for name in frames),
        said,
    ]
    return "".join(f"{who} {line}\n" for line in "\n".join(lines).split("\n"))


def trials(rng: random.Random, step: int) -> str:
    """What a step says of trials that ended without success, which is expected."""
    who = f"\x1b[36m(skyrl_entrypoint pid={rng.randrange(9999)})\x1b[0m"
    return "".join(
        said(rng, "run", f"Trial task_{rng.getrandbits(40):x}__{step} failed") + trace(who, error)
        for error in (
            "harbor.llms.base.ContextLengthExceededError: Model q context length exceeded",
            "harbor.trial.errors.AgentTimeoutError: Agent execution timed out after 900.0 seconds",
        )
    )


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB. GPU 3 has a total "
    "capacity of 94.50 GiB of which 1.02 GiB is free."
)


def pieces(size: int, *extras: str) -> Iterator[bytes]:
    """The log, about `size` bytes of it, in pieces of a step."""
    rng = random.Random(4)
    stock = [chatter(rng).encode() for _ in range(4000)]
    yield said(rng, "setup", "Total training steps: 1000000").encode()
    written, step = 0, 0
    while written < size:
        step += 1
        lines: list[bytes] = []
        room = STEP_BYTES
        while room > 0:
            lines.append(rng.choice(stock))
            room -= len(lines[-1])
        if "trials" in extras:
            lines.append(trials(random.Random(step), step).encode())
        metrics = json.dumps(record(rng, step))
        mirror = f"WANDB_MIRROR kind=train step={step} metrics={metrics}"
        lines.append(said(rng, "_log_metrics_stdout", mirror).encode())
        bar = (
            f"Training Step Progress:   0%|          | {step}/1000000 [1:02:03<8:10:01, 600.1s/it]"
        )
        lines.append(f"{_ACTOR}\r{bar}\n".encode())
        piece = b"".join(lines)
        written += len(piece)
        yield piece
    if "oom" in extras:
        yield trace("\x1b[36m(FSDPPolicyWorker pid=71)\x1b[0m", OOM).encode()


def size_of(text: str) -> int:
    """`100MiB` in bytes."""
    for unit, factor in _UNITS.items():
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * factor
    return int(text)


if __name__ == "__main__":
    for written in pieces(size_of(sys.argv[1]), *sys.argv[2:]):
        sys.stdout.buffer.write(written)
