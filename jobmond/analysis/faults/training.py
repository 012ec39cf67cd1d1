"""Training that diverged, as programs say it (metric records are read elsewhere)."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

_ADVICE = "Go back to the last good checkpoint; lower the learning rate, clip gradients, look at the data of that step."

FAULTS = (
    Fault(
        id="nan-said",
        cause="nan-loss",
        role=Role.ROOT,
        needles=(
            "oss is",
            "oss are",
            "oss became",
            "oss was",
            "oss went",
            "oss contains",
            "radient",
            "rad norm is",
            "grad_norm is",
            "found NaN",
            "found nan",
            "found Inf",
            "nexpected result nan",
            "returned nan values",
            "scale already at minimum",
            "inimum loss scale",
            "NaN or Inf found",
            "an loss",
            "aN loss",
            "an grad",
            "aN grad",
        ),
        pattern=re.compile(
            r"(?<![\"'`])(?:[Ll]oss|[Gg]radients?|[Gg]rad[ _]norm)(?:\S* |\s)?(?:is|are|became|was|went|contains?) (?:now )?(?:an? )?(?:non-finite|NaN|nan|inf|Inf)\b|"
            r"found (?:NaN|nan|Inf) in (?:local |the )?(?:forward loss|grad|loss)|[Uu]nexpected result nan|returned nan values in its|"
            r"scale already at minimum|^FloatingPointError: Minimum loss scale reached|NaN or Inf found in (?:loss|gradients?)|(?:[Nn]an|NaN) (?:loss|gradients?) (?:detected|encountered|at step)"
        ),
        scope=Scope.ANY,
        advice=_ADVICE,
        source="Megatron-LM, DeepSpeed, fairseq, autograd anomaly mode",
        yes=(
            "AssertionError: Rank 3: found NaN in local grad norm in backward pass before data-parallel communication collective.",
            "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
            "ValueError: Loss is nan, stopping training",
        ),
        no=(
            "loss=1.21 dataset=finance_qa comm_wait=12 nanoseconds",
            'on_nan: skip            # one of skip, raise: "loss is nan"',
            "check_for_nan_in_loss_and_grad .................. True",
        ),
    ),
    Fault(
        id="nan-sampling",
        cause="nan-loss",
        role=Role.SYMPTOM,
        needles=("probability tensor contains either",),
        weight=15,
        any_level=True,
        advice=_ADVICE,
        source="PyTorch, multinomial",
        yes=("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0",),
        no=("probability tensor has shape",),
    ),
)
