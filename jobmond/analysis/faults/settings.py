"""Configuration: arguments and files that a tool refuses."""

import re

from jobmond.analysis.faults.fault import Fault, Role

_ADVICE = "Fix the setting it names; try the command with a dry run or one step before the next submission."

FAULTS = (
    Fault(
        id="arguments",
        cause="config-error",
        role=Role.ROOT,
        needles=(
            ": error: ",
            "unrecognized arguments",
            "No such option",
            "No such command",
            "not used by the HfArgumentParser",
            "UsageError",
            "Invalid value for",
            "unexpected argument",
            "rror loading config file",
            "arsing error",
            "Unrecognized option",
            "Missing ",
            "Could not consume arg",
            "received no value",
        ),
        pattern=re.compile(
            r"^[\w./-]+(?: [\w-]+)?: error: (?:unrecognized arguments|argument |the following arguments are required|ambiguous option|invalid choice|one of the arguments|unexpected argument)|"
            r"Some keys are not used by the HfArgumentParser|^(?:Error: |Usage Error: )?(?:No such option|No such command|Invalid value for|Missing option|Missing argument|Missing parameter|Got unexpected extra argument)|"
            r"^ValueError: Some specified arguments are not used|^[Ee]rror: unexpected argument |^Unexpected error: Error loading config file |^[╭┌]─+ Parsing error ─|^│ ?(?:Unrecognized options?|No such option|Missing option|Missing argument|Invalid value)\b|^ERROR: (?:Could not consume arg|The function received no value)"
        ),
        advice=_ADVICE,
        source="argparse, click, transformers",
        yes=(
            'train.py: error: unrecognized arguments: --gradient_checkpointing_kwargs {"use_reentrant": false}',
            "ValueError: Some keys are not used by the HfArgumentParser: ['lrr']",
        ),
        no=("srun: error: n1: task 0: Exited with exit code 1",),
    ),
    Fault(
        id="hydra",
        cause="config-error",
        role=Role.ROOT,
        needles=(
            "Could not override",
            "is not in struct",
            "MissingMandatoryValue",
            "ConfigAttributeError",
            "ConfigKeyError",
            "InterpolationKeyError",
            "InterpolationResolutionError",
            "MissingConfigException",
            "ConfigCompositionException",
            "OverrideParseException",
            "Error merging override",
            "Missing mandatory value",
            "Cannot find primary config",
            "Could not find '",
            "ConfigTypeError",
            "mismatched input",
            "UnsupportedInterpolationType",
            "In '",
        ),
        pattern=re.compile(
            r"^Could not override '|^Key '[^']+' is not in struct|^(?:[\w.]+\.)?(?:MissingMandatoryValue|Config(?:Attribute|Key|Type|Index)Error|Interpolation\w+Error|MissingConfigException|ConfigCompositionException|OverrideParseException|UnsupportedInterpolationType)\b|"
            r"^Error merging override |^Missing mandatory value|^Cannot find primary config|^In '[^']+': Could not find '|^mismatched input '|^Could not find '[^']+/[^']+'$|^Error merging '|^Value '.*' of type '.*' could not be converted|^Error instantiating '"
        ),
        advice=_ADVICE,
        source="hydra, omegaconf",
        yes=(
            "Could not override 'actor_rollout_ref.actor.optim.lrr'.",
            "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: model.path",
            "In 'train': Could not find 'optim/adamx'",
        ),
        no=("Did not find any active Ray processes.",),
    ),
    Fault(
        id="schema",
        cause="config-error",
        role=Role.ROOT,
        needles=(
            "ScannerError",
            "ParserError",
            "ConstructorError",
            "ComposerError",
            "validation error",
            "ValidationError",
            "TOMLDecodeError",
            "DuplicateKeyError",
            "YAMLError",
            "DuplicateOptionError",
            "MissingSectionHeaderError",
        ),
        pattern=re.compile(
            r"^(?:[\w.]+\.)?(?:ScannerError|ParserError|ConstructorError|ComposerError|TOMLDecodeError|DuplicateKeyError|YAMLError|DuplicateOptionError|MissingSectionHeaderError)\b|"
            r"^(?:[\w.]+\.)?ValidationError: |^\d+ validation errors? for \w"
        ),
        advice=_ADVICE,
        source="PyYAML, pydantic, jsonschema, tomllib",
        yes=(
            "yaml.scanner.ScannerError: mapping values are not allowed here",
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for AxolotlInputConfig",
        ),
        no=("VLLMValidationError: 32769 input tokens > 32768 max",),
    ),
    Fault(
        id="tool-settings",
        cause="config-error",
        role=Role.ROOT,
        needles=(
            "must be divisible by",
            "not divisible by",
            "must be a multiple of",
            "total desired GPUs",
            "train_batch_size is not equal",
            "batch related parameters",
            "Invalid account",
            "Unable to create step",
            "More processors requested",
            "invalid partition",
            "Invalid partition",
            "nvalid qos",
            "Invalid generic resource",
            "Invalid --",
            "Unknown quantization",
            "not recognized",
            "Model architectures",
            "not supported for now",
            "does not recognize this architecture",
            "unexpected keyword argument",
            "requires at least",
            "DeepSpeedConfigError",
            " has been toggled on, but",
            "Invalid job array",
            "job submission failed: ",
            "is not supported",
            "is not a valid",
        ),
        pattern=re.compile(
            r"^(?:AssertionError|ValueError|RuntimeError)\b.*(?:must be divisible by|(?:is )?not divisible by|must be a multiple of|is less than total desired GPUs|train_batch_size is not equal|Check batch related parameters)|"
            r"^(?:sbatch|srun|salloc): error: .*(?:Unable to create step for job|More processors requested than permitted|[Ii]nvalid (?:account|partition|qos|generic resource|--|feature|job array)|[Ii]nvalid wckey)|"
            r"^(?:sbatch|srun): error: Batch job submission failed: (?!.*(?:contact slurm|[Ss]ocket timed out|Zero Bytes|configuration is not available|QOS policy|not responding|[Tt]emporarily))|"
            r"^(?:[\w.]+Error): .*(?:[Uu]nknown quantization|quantization=\S+ not recognized|Model architectures \[.*\] (?:are not supported|failed)|does not recognize this architecture|FlashAttention2 has been toggled on, but)|"
            r"^(?:[\w.]+\.)?DeepSpeedConfigError\b|^TypeError: (?:\w*(?:Config|Args|Arguments|Options)\w*)\.__init__\(\) got an unexpected keyword argument"
        ),
        advice=_ADVICE,
        source="Megatron-LM, DeepSpeed, vLLM, transformers, sbatch",
        yes=(
            "AssertionError: global batch size (100) is not divisible by micro batch size (8) times data parallel size (3)",
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified",
            "TypeError: TrainingArguments.__init__() got an unexpected keyword argument 'evaluation_strategy'",
        ),
        no=("resize_token_embeddings skipped (already a multiple of 128)",),
    ),
)
