"""TRL: the Trainer's dictionaries, with what its own trainers add.

Source: trl 1.16, `trainer/grpo_trainer.py`, `trainer/sft_trainer.py`.
"""

from collections.abc import Mapping
from typing import ClassVar

from jobmond import registry
from jobmond.analysis import hfdict
from jobmond.analysis.hfdict import TrainerDialect
from jobmond.analysis.literals import translated

CANONICAL: Mapping[str, tuple[str, ...]] = {
    **hfdict.CANONICAL,
    "reward": ("reward",),
    "reward_std": ("reward_std",),
    "entropy": ("entropy",),
    "kl": ("kl",),
    "clip_ratio": ("clip_ratio/region_mean", "clip_ratio"),
    "importance_ratio": ("sampling/importance_sampling_ratio/mean",),
}
# An optimizer step may log the policy's part without the reward, which belongs to generation.
_POLICY = ("reward", "clip_ratio/region_mean", "clip_ratio", "completions/mean_length")


@registry.parsers.plugin("trl")
class Trl(TrainerDialect):
    """GRPO and its kin are reinforcement learning; SFT's dictionaries hold entropy as well, so
    only a reward tells.
    """

    name: ClassVar = "trl"
    hints: ClassVar = (
        *hfdict.HINTS,
        b"/trl/trainer/",
        b"'completions/mean_length'",
        b"'frac_reward_zero_std'",
        b"'mean_token_accuracy'",
        b"'clip_ratio/region_mean'",
        b"Packing train dataset",
        b"Tokenizing train dataset",
    )

    def canonical(self, metrics: Mapping[str, float]) -> Mapping[str, float]:
        found = translated(CANONICAL, metrics)
        if "loss" in metrics and any(name in metrics for name in _POLICY):
            found["policy_loss"] = metrics["loss"]
        return found
