"""Files and file systems."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

_ERROR = r"^(?:[\w.]+\.)?\w*(?:Error|Exception)\b"

FAULTS = (
    Fault(
        id="quota",
        cause="quota",
        role=Role.ROOT,
        needles=(
            "isk quota exceeded",
            "[Errno ",
            "EDQUOT",
            "storage quota",
            "storage limit",
            "insufficient_quota",
            "your current quota",
            "(os error ",
        ),
        pattern=re.compile(
            r"[Dd]isk quota exceeded|\[Errno 122\]|\bEDQUOT\b|os error 122|storage (?:quota|limit) (?:was )?(?:exceeded|reached)|insufficient_quota|exceeded your current quota"
        ),
        advice="Free space or inodes under the quota (caches, old checkpoints), or ask for more.",
        source="Linux, EDQUOT",
        yes=(
            "OSError: [Errno 122] Disk quota exceeded",
            "cp: error writing 'x': Disk quota exceeded",
        ),
        no=("disk quota: 41% of 10T used",),
    ),
    Fault(
        id="disk-full",
        cause="disk-full",
        role=Role.ROOT,
        needles=(
            "o space left on device",
            "[Errno ",
            "ENOSPC",
            "PytorchStreamWriter failed",
            "is full",
            "unexpected pos",
            "iostream error",
            "OutOfDiskError",
            "(os error ",
            "not enough disk space",
            "Not enough disk space",
            "enough free disk space",
        ),
        pattern=re.compile(
            r"[Nn]o space left on device|\[Errno 28\]|\bENOSPC\b|PytorchStreamWriter failed writing|"
            r"database or disk is full|[Ff]ile ?system is full|basic_ios::clear: iostream error|^(?:[\w.]+\.)?OutOfDiskError\b|enforce fail at inline_container.*unexpected pos|os error 28|"
            r"^(?:[\w.]+Error: .*)?[Nn]ot enough (?:free )?disk space"
        ),
        advice="Free space where it writes (also /tmp, caches and inodes), or write elsewhere.",
        source="Linux ENOSPC, PyTorch, SQLite",
        yes=(
            "OSError: [Errno 28] No space left on device: '/tmp/x'",
            "    Write failed because No space left on device",
            "RuntimeError: [enforce fail at inline_container.cc:778] . PytorchStreamWriter failed writing file data/612: file write failed",
        ),
        no=("KV cache pool is full. Retract requests.", 'patterns: ["No space left"]'),
    ),
    Fault(
        id="cache-miss",
        cause="missing-file",
        role=Role.ROOT,
        needles=(
            "LocalEntryNotFoundError",
            "OfflineModeIsEnabled",
            "outgoing traffic has been disabled",
            "couldn't find them in the cached files",
            "couldn't find it in the cached files",
            "RepositoryNotFoundError",
            "RevisionNotFoundError",
            "EntryNotFoundError",
            "DatasetNotFoundError",
            "DataFilesNotFoundError",
            "is not a local folder",
            "does not appear to have a file named",
            "Can't load tokenizer for",
            "Incorrect path_or_model_id",
            "hf_quant_config.json",
            "Can't load the model for",
            "Repo id must",
            "no file named",
        ),
        pattern=re.compile(
            r"^(?:[\w.]+\.)?(?:LocalEntryNotFoundError|OfflineModeIsEnabled|RepositoryNotFoundError|RevisionNotFoundError|EntryNotFoundError|DatasetNotFoundError|DataFilesNotFoundError)\b|"
            r"^\w+Error: .*(?:outgoing traffic has been disabled|couldn't find (?:them|it) in the cached files|is not a local folder|does not appear to have a file named|Incorrect path_or_model_id|Can't load (?:tokenizer|the model) for|no file named)|"
            r"hf_quant_config\.json (?:was )?not found|^(?:[\w.]+\.)?HFValidationError: Repo id must"
        ),
        scope=Scope.ANY,
        advice="Check the name; in an offline job fill the cache before, where network is.",
        source="huggingface_hub, transformers, datasets",
        yes=(
            "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder",
            "OSError: org/model is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'",
        ),
        no=("cached files: 12",),
    ),
    Fault(
        id="checkpoint-missing",
        cause="missing-file",
        role=Role.ROOT,
        needles=(
            "could not find the metadata file",
            "exit-on-missing-checkpoint",
            "Can't find a valid checkpoint at",
            "Unable to find a valid checkpoint",
            "No valid checkpoint found",
            "checkpoint not found",
            "No checkpoint found at",
            "Checkpoint not found",
        ),
        pattern=re.compile(
            r"'--exit-on-missing-checkpoint' set|^(?:\w+Error): .*(?:[Cc]an't find a valid checkpoint|[Nn]o (?:valid )?checkpoint found|[Cc]heckpoint .*not found)"
        ),
        any_level=True,
        advice="Check the path it loads from, and that the checkpoint there is complete.",
        source="Megatron-LM, transformers",
        yes=(
            ">> '--exit-on-missing-checkpoint' set ... exiting. <<",
            "ValueError: Can't find a valid checkpoint at /scratch/x/checkpoint-40",
        ),
        no=("No checkpoint found, starting training from scratch",),
    ),
    Fault(
        id="permission",
        cause="permission",
        role=Role.ROOT,
        needles=(
            "PermissionError",
            "ermission denied",
            "[Errno ",
            "Read-only file system",
            "peration not permitted",
            "(os error ",
        ),
        pattern=re.compile(
            r"^(?:[\w.]+\.)?PermissionError\b|"
            + _ERROR
            + r".*(?:Permission denied|Errno 13\]|Read-only file system|Errno 30\]|os error 13)|"
            r"^(?:[\w./-]+: ){1,4}(?:line \d+: )?.{0,200}(?:Permission denied|Read-only file system|Operation not permitted)$"
        ),
        advice="Check owner and mode of the path, and who the job is inside its container (root is squashed on NFS).",
        source="Linux EACCES, EPERM, EROFS",
        yes=(
            "PermissionError: [Errno 13] Permission denied: '/shared/hf/models--x'",
            "mkdir: cannot create directory '/data': Permission denied",
            "OSError: [Errno 30] Read-only file system: '/opt/x'",
        ),
        no=(
            "WARNING: The directory '/home/bob/.cache/pip' or its parent directory is not owned or is not writable",
        ),
    ),
    Fault(
        id="missing-file",
        cause="missing-file",
        role=Role.ROOT,
        needles=(
            "FileNotFoundError",
            "o such file or directory",
            "[Errno ",
            "NotADirectoryError",
            "ommand not found",
            "can't open file",
            "(os error ",
            "No files found matching",
            "An error occurred (",
            "NoSuchKey",
            "NoSuchBucket",
            "unable to open file",
        ),
        pattern=re.compile(
            r"^(?:[\w.]+\.)?(?:FileNotFoundError|NotADirectoryError|NoSuchKey|NoSuchBucket)\b|An error occurred \((?:404|NoSuchKey|NoSuchBucket)\)|"
            + _ERROR
            + r".*(?:No such file or directory|Errno 2\]|os error 2\))|"
            r"^\S*python[\d.]*: can't open file '|^slurmstepd: error: execve\(\): .*No such file or directory$|"
            r"^(?:[\w./~+-]+: )(?:line \d+: )?[\w./@+-]{1,200}: (?:No such file or directory|command not found)$|"
            r"^(?:ls|cat|cp|cd|tar|source|bash|sh|head|stat|mv): .{0,300}: No such file or directory$"
        ),
        advice="Check that the path is mounted in the container, there on this node and spelled as meant.",
        source="Linux ENOENT, Python, bash",
        yes=(
            "FileNotFoundError: [Errno 2] No such file or directory: '/scratch/x/part-41.jsonl'",
            "python: can't open file '/w/train.py': [Errno 2] No such file or directory",
            "/var/spool/slurmd/job9/slurm_script: line 12: torchrun: command not found",
        ),
        no=("if_missing: start_from_scratch   # FileNotFoundError otherwise",),
    ),
)
