"""Credentials that are missing or refused."""

import re

from jobmond.analysis.faults.fault import Fault, Role

_E = r"^(?:[\w.]+\.)?"

FAULTS = (
    Fault(
        id="registry-auth",
        cause="auth",
        role=Role.ROOT,
        needles=(
            "Unauthorized",
            "Forbidden",
            "returned error code",
            "pull access denied",
            "requested access to the resource is denied",
            "authentication required",
            "unauthorized.",
            "unauthorized:",
            "no basic auth credentials",
        ),
        pattern=re.compile(
            r"pyxis: .*(?:40[13] (?:Unauthorized|Forbidden))|returned error code: 40[13]\b|pull access denied|requested access to the resource is denied|"
            r"[Ff]ailed to pull image .*(?:40[13] |unauthorized|authentication required|no basic auth)|^(?:FATAL|ERROR|Error)\b.*(?:unauthorized: |authentication required)|Error response from daemon: .*(?:unauthorized|denied)"
        ),
        any_level=True,
        advice="Give the node credentials for the registry (for enroot ~/.config/enroot/.credentials).",
        source="enroot, pyxis, containerd, docker",
        yes=(
            "slurmstepd: error: pyxis:     [ERROR] URL https://nvcr.io/v2/x/manifests/1 returned error code: 401 Unauthorized",
            'Failed to pull image "nvcr.io/x:1": unauthorized: authentication required',
        ),
        no=(
            "[warning] Failed to get manifest for nvcr.io/nvidia/eval-factory/nemo-skills:25.09: 401 Unauthorized",
        ),
    ),
    Fault(
        id="hub-auth",
        cause="auth",
        role=Role.ROOT,
        needles=(
            "GatedRepoError",
            "gated repo",
            "Client Error",
            "Invalid username or password",
            "Invalid user token",
            "gated dataset",
            "LocalTokenNotFoundError",
            "Token is required",
            "Please log in",
        ),
        pattern=re.compile(
            _E
            + r"(?:GatedRepoError|LocalTokenNotFoundError)\b|"
            + _E
            + r"\w*Error: .*(?:40[13] Client Error|gated (?:repo|dataset)|Token is required|[Ii]nvalid user(?:name| token))|"
            r"^Access to (?:model|dataset) \S+ is restricted|^Cannot access gated repo"
        ),
        advice="Set HF_TOKEN in the job and accept the licence of the repository.",
        source="huggingface_hub",
        yes=(
            "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1-68)",
            "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: https://huggingface.co/api/x",
        ),
        no=(
            "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/x",
        ),
    ),
    Fault(
        id="api-key",
        cause="auth",
        role=Role.ROOT,
        needles=(
            "AuthenticationError",
            "AuthError",
            "invalid_api_key",
            "ncorrect API key",
            "api_key not configured",
            "PermissionDeniedError",
            "API key",
            "api key",
            "No API key",
            "wandb login",
            "user is not logged in",
            "wandb: ERROR",
            "Unauthorized",
            "Forbidden",
            "rror code",
            "status",
            "udge",
            "rader",
            "HTTP",
        ),
        pattern=re.compile(
            _E
            + r"(?:\w*AuthenticationError|AuthError|PermissionDeniedError|AgentAuthenticationError)\b|api_key not configured|"
            + _E
            + r"\w*(?:Error|Exception)\b.*(?:invalid_api_key|[Ii]ncorrect API key|[Ii]nvalid API key|API key .{0,40}(?:invalid|expired|missing|not (?:set|found|provided)|must be \d+ characters)|No API key|error code: 401|\b401 Unauthorized|HTTP(?:/[\d.]+)? 401|status(?:_code)?[=: ]+401)|"
            r"\b(?:judge|grader)\b.*(?:\b401\b|invalid_api_key|[Ii]ncorrect API key)|"
            r"[Mm]ust provide an? API key|^(?:[\w.]+Error: .*)?permission denied: user .*wandb|^wandb: ERROR .*(?:not logged in|\b40[13]\b|permission denied|API key)"
        ),
        any_level=True,
        advice="Put a valid key into the job's environment; it is refused, so waiting does not help.",
        source="openai, anthropic, wandb, litellm",
        yes=(
            "openai.AuthenticationError: Error code: 401 - {'error': {'code': 'invalid_api_key'}}",
            "wandb.errors.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])",
        ),
        no=("use an API key from https://wandb.ai/authorize to skip this",),
    ),
    Fault(
        id="cloud-auth",
        cause="auth",
        role=Role.ROOT,
        needles=(
            "ExpiredToken",
            "InvalidAccessKeyId",
            "SignatureDoesNotMatch",
            "AccessDenied",
            "NoCredentialsError",
            "Unable to locate credentials",
            "DefaultCredentialsError",
            "Permission denied (publickey",
            "Host key verification failed",
            "could not read Username",
            "Authentication failed",
            "RefreshError",
            "An error occurred (",
            "Forbidden: ",
            "Unauthorized: ",
            "Unauthenticated: ",
            "PermissionDenied: ",
        ),
        pattern=re.compile(
            _E
            + r"(?:NoCredentialsError|DefaultCredentialsError|TokenRetrievalError)\b|\((?:ExpiredToken|InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied)\)|An error occurred \(40[13]\)|"
            + _E
            + r"(?:Forbidden|PermissionDenied|Unauthorized|Unauthenticated): 40[13]\b|"
            r""
            r"Unable to locate credentials|Permission denied \(publickey|^Host key verification failed|fatal: could not read Username|^fatal: Authentication failed for |"
            + _E
            + r"RefreshError\b"
        ),
        advice="Renew the credentials the job uses.",
        source="botocore, google-auth, OpenSSH, git",
        yes=(
            "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
            "alice@login1: Permission denied (publickey,gssapi-with-mic).",
        ),
        no=("credentials refreshed",),
    ),
)
