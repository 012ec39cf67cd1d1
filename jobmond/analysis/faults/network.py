"""The network, and services behind it."""

import re

from jobmond.analysis.faults.fault import Fault, Role, Scope

_E = r"^(?:[\w.]+\.)?"

FAULTS = (
    Fault(
        id="port-taken",
        cause="network",
        role=Role.ROOT,
        needles=("ddress already in use", "EADDRINUSE", "[Errno ", "Cannot bind"),
        pattern=re.compile(r"[Aa]ddress already in use|\bEADDRINUSE\b|\[Errno 98\]"),
        any_level=True,
        advice="Another process holds the port: choose a free one (a random master port), or have the node to yourself.",
        source="Linux EADDRINUSE, c10d",
        yes=(
            "[c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, code: -98, name: EADDRINUSE",
        ),
        no=("address already mapped",),
    ),
    Fault(
        id="rate-limited",
        cause="network",
        role=Role.ROOT,
        needles=(
            "Client Error",
            "Too Many Requests",
            "toomanyrequests",
            "RateLimitError",
            "ate limit",
            "rror code",
        ),
        pattern=re.compile(
            _E
            + r"\w*(?:Error|Exception)\b.*(?:\b429\b|Too Many Requests|[Rr]ate limit)|"
            + _E
            + r"RateLimitError\b|toomanyrequests: |returned error code: 429"
        ),
        advice="Too many at once: give a token, cache before the job starts, spread the starts.",
        source="HTTP 429, Hugging Face Hub, Docker Hub",
        yes=(
            "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/datasets/x",
        ),
        no=("HTTP Error 429 thrown while requesting GET https://huggingface.co/x",),
        scope=Scope.ANY,
    ),
    Fault(
        id="controller-unreachable",
        cause="network",
        role=Role.SYMPTOM,
        needles=(
            "Unknown host",
            "DNS SRV lookup",
            "nable to contact slurm controller",
            "configuration source",
            "Unable to connect to port",
        ),
        pattern=re.compile(
            r"^\s{0,16}(?:sbatch|srun|squeue|scontrol|slurm_\w+): ?(?:error|fatal)?:? .*(?:Unknown host|DNS SRV lookup failed|[Uu]nable to contact slurm controller|configuration source)|"
            r"^Unexpected error: .*Unable to connect to port \d+"
        ),
        scope=Scope.LINE,
        weight=51,
        any_level=True,
        advice="The cluster could not be reached from where this ran: check host, port and the controller.",
        source="Slurm clients, NeMo-Run",
        yes=(
            "sbatch: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host",
            "           sbatch: error: fetch_config: DNS SRV lookup failed",
            "Unexpected error: [Errno None] Unable to connect to port 22923 on 127.0.0.1",
        ),
        no=("Connecting to root@vm",),
    ),
    Fault(
        id="connection",
        cause="network",
        role=Role.SYMPTOM,
        needles=(
            "onnection refused",
            "ConnectError",
            "APIConnectionError",
            "Max retries exceeded",
            "Name or service not known",
            "name resolution",
            "getaddrinfo",
            "Network is unreachable",
            "No route to host",
            "timed out",
            "Timeout",
            "ServerDisconnectedError",
            "onnection reset by peer",
            "onnection aborted",
            "Bad Gateway",
            "Server Error",
            "Gateway Time",
            "SSLError",
            "CERTIFICATE_VERIFY_FAILED",
            "IncompleteRead",
            "ProxyError",
            "RemoteDisconnected",
            "ConnectionError",
            "ClientConnectorError",
            "Could not resolve host",
            "Cannot connect to host",
            "unable to access 'http",
            "RemoteProtocolError",
            "ChunkedEncodingError",
            "Connection lost",
            "ReadError",
            "ClientOSError",
            "ClientPayloadError",
            "URLError",
            "Failed to establish a new connection",
            "InternalServerError",
            "ServiceUnavailable",
            "EndpointConnection",
            "RpcError",
            "socket.timeout",
        ),
        pattern=re.compile(
            _E
            + r"(?:ConnectError|ConnectTimeout|ReadTimeout|ReadError|APIConnectionError|APITimeoutError|ServerDisconnectedError|SSLError|SSLCertVerificationError|IncompleteRead|ProxyError|RemoteDisconnected|RemoteProtocolError|ChunkedEncodingError|ConnectionError|ConnectionRefusedError|ConnectionResetError|ConnectionAbortedError|Client\w*(?:Connector|OS|Payload)\w*Error|ClientConnectorError|URLError|gaierror|NewConnectionError|MaxRetryError|ReadTimeoutError|ConnectTimeoutError|InternalServerError|ServiceUnavailableError|FSTimeoutError|EndpointConnectionError|_InactiveRpcError|AioRpcError)\b|^socket\.timeout: |"
            + _E
            + r"CommError\b.*timed out|"
            + _E
            + r"\w*(?:Error|Exception)\b.*(?:[Cc]onnection refused|Max retries exceeded|Name or service not known|Temporary failure in name resolution|Network is unreachable|No route to host|Connection (?:timed out|reset by peer|aborted)|\b50[0234] (?:Server Error|Bad Gateway|Service|Gateway)|Read timed out|Failed to establish a new connection|Cannot connect to host|couldn't connect to 'https)|"
            r"^(?:curl: \(\d+\)|wget: |ssh: |fatal: unable to access 'http|git: ).*(?:resolve host|refused|timed out|unreachable|reset)|Could not resolve host: "
        ),
        weight=50,
        advice="Is the other side up, and reachable from the compute node (proxy, firewall, offline nodes): look there first.",
        source="requests, httpx, aiohttp, curl, git",
        yes=(
            "httpx.ConnectError: [Errno 111] Connection refused",
            "openai.APIConnectionError: Connection error.",
            "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x",
            "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        ),
        no=("client: 2026-07-10 10:10:14 server not reachable yet: Connection refused",),
    ),
)
