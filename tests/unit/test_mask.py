"""Secrets never leave the log."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobmond.analysis.mask import mask

# Every body here was typed by hand and opens nothing.
A16 = "Ab1Cd2Ef3Gh4Ij5K"
A34 = "AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
HEX40 = "0123456789abcdef0123456789abcdef01234567"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

SHAPES = [
    ("hf_" + A34, "hf_****"),
    ("++ export HF_TOKEN=hf_" + A34, "++ export HF_TOKEN=****"),
    ("HF_TOKEN=hf_" + A34 + " python x.py", "HF_TOKEN=**** python x.py"),
    (r"line\nhf_" + A34 + r"\nnext", r"line\nhf_****\nnext"),
    ("ghp_" + A34 + "xy", "ghp_****"),
    ("github_pat_11ABCDEFG0_" + A34, "github_pat_****"),
    ("glpat-" + A16 + "_xyz", "glpat-****"),
    ("key sk-proj-" + A34 + "_-T3B", "key sk-****"),
    ("sk-ant-api03-" + A34, "sk-****"),
    (r"'\nsk-or-v1-" + HEX40, r"'\nsk-****"),
    ("AKIAIOSFODNN7EXAMPLE", "AKIA****"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
     "aws_secret_access_key = ****"),
    ("aws_access_key_id=AKIAIOSFODNN7EXAMPLE", "aws_access_key_id=****"),
    ("AIza" + A34 + "z", "AIza****"),
    ("xoxb-12345678901-abcdefABCDEF", "xoxb-****"),
    ("https://hooks.slack.com/services/T0000/B0000/XXXXXXXX",
     "https://hooks.slack.com/services/****"),
    ("nvapi-" + A34, "nvapi-****"),
    ("gsk_" + A34, "gsk_****"),
    ("WANDB_API_KEY=" + HEX40, "WANDB_API_KEY=****"),
    ("wandb login " + HEX40, "wandb login ****"),
    ("wandb: using api key " + HEX40 + " from netrc", "wandb: using api key **** from netrc"),
    ("machine api.wandb.ai login user password " + HEX40,
     "machine api.wandb.ai login user password ****"),
    ("got " + JWT + " back", "got eyJ**** back"),
    ("Authorization: Bearer " + A34, "Authorization: Bearer ****"),
    ("{'Authorization': 'Basic YWxhZGRpbjpvcGVu'}", "{'Authorization': 'Basic ****'}"),
    ('-H "authorization: token abcdef123456"', '-H "authorization: token ****"'),
    ("sent bearer abc.def-123456", "sent bearer ****"),
    ("X-Api-Key: topsecret", "X-Api-Key: ****"),
    ("Set-Cookie: session=abc; path=/", "Set-Cookie: ****"),
    ("postgresql+psycopg://bob:hunter2@db.example/jobs",
     "postgresql+psycopg://bob:****@db.example/jobs"),
    ("redis://:p@ss@cache:6379/0", "redis://:****@cache:6379/0"),
    ("https://" + A34 + "@github.com/a/b.git", "https://****@github.com/a/b.git"),
    ("GET /x?access_token=abc12345&n=2", "GET /x?access_token=****&n=2"),
    ("https://b.example/o?X-Amz-Signature=deadbeef&a=1",
     "https://b.example/o?X-Amz-Signature=****&a=1"),
    ("https://a.example/c?sv=1&sig=aBc%2Fd%3D", "https://a.example/c?sv=1&sig=****"),
    ("export DB_PASSWORD='it is secret'", "export DB_PASSWORD='****'"),
    ("export X_TOKEN=abc", "export X_TOKEN=****"),
    ('declare -x MY_SECRET="a b c"', 'declare -x MY_SECRET="****"'),
    ("+ PASSWORD=$'a\\nb' run", "+ PASSWORD=$'****' run"),
    ("+ PASSWORD='it'\\''s' run", "+ PASSWORD='****' run"),
    ("DB_PWD=hunter2", "DB_PWD=****"),
    ("password: hunter2", "password: ****"),
    ("Config(api_key=abc, lr=0.1)", "Config(api_key=****, lr=0.1)"),
    ("{password=abc}", "{password=****}"),
    ('{"api_key": "abc\\"def", "n": 1}', '{"api_key": "****", "n": 1}'),
    (r'"{\"client_secret\": \"abc\", \"n\": 1}"', r'"{\"client_secret\": \"****\", \"n\": 1}"'),
    ("{'password': b'abc'}", "{'password': b'****'}"),
    ("password=12345678", "password=****"),
    ("serve --api-key abc --port 1", "serve --api-key **** --port 1"),
    ("serve --api-key=abc --port 1", "serve --api-key=**** --port 1"),
    ("login --token abcdefgh12", "login --token ****"),
    ("['--hf-api-key', 'abc', '-v']", "['--hf-api-key', '****', '-v']"),
    ("mysql --password hunter2", "mysql --password ****"),
    ("sshpass -p hunter2 ssh a@b", "sshpass -p **** ssh a@b"),
    ("mysql -u root -pX -h db", "mysql -u root -p**** -h db"),
    ("mysqldump -phunter2 all", "mysqldump -p**** all"),
    ("redis-cli -h db -a hunter2 ping", "redis-cli -h db -a **** ping"),
    ("ldapsearch -D cn=x -w hunter2", "ldapsearch -D cn=x -w ****"),
    ("echo passwd hunter2", "echo passwd ****"),
    ("the password hunter2, as ever", "the password ****, as ever"),
    ("curl -s -u alice:hunter2 https://x", "curl -s -u alice:**** https://x"),
    ("DefaultEndpointsProtocol=https;AccountKey=abc==;x=1",
     "DefaultEndpointsProtocol=https;AccountKey=****"),
]  # fmt: skip

MORE_SHAPES = [
    ("echo hunter2 | passwd --stdin bob", "echo **** | passwd --stdin bob"),
    ("echo bob:hunter2 | chpasswd", "echo **** | chpasswd"),
    ("echo hunter2 | sudo -S ls", "echo **** | sudo -S ls"),
    ("echo abc | docker login -u a --password-stdin",
     "echo **** | docker login -u a --password-stdin"),
    ("chpasswd <<< bob:hunter2", "chpasswd <<< ****"),
    ("gh auth login --with-token <<< abc", "gh auth login --with-token <<< ****"),
    ("setenv X_TOKEN abc", "setenv X_TOKEN ****"),
    ("ENV DB_PASSWORD hunter2", "ENV DB_PASSWORD ****"),
    ("aws configure set aws_secret_access_key abc", "aws configure set aws_secret_access_key ****"),
    ("DB_PASS=hunter2", "DB_PASS=****"),
    ('declare -x DB_PASS="hunter2"', 'declare -x DB_PASS="****"'),
    ("SSHPASS=hunter2 sshpass -e ssh a", "SSHPASS=**** sshpass -e ssh a"),
    ("Uid=bob;Pwd=hunter2;", "Uid=bob;Pwd=****;"),
    ("AZURE_OPENAI_KEY=" + HEX40, "AZURE_OPENAI_KEY=****"),
    ("'B2_KEY': 'K001" + A34 + "'", "'B2_KEY': '****'"),
    ("Ocp-Apim-Subscription-Key: abc", "Ocp-Apim-Subscription-Key: ****"),
    ("ApiKey " + A34, "ApiKey ****"),
    ("using access token " + A34, "using access token ****"),
    ('{"refresh_token": "1//0g' + A34 + '"}', '{"refresh_token": "****"}'),
    ("got 1//0g" + A34, "got 1//0****"),
    ("sk_live_" + A34, "sk_live_****"),
    ("whsec_" + A34, "whsec_****"),
    ("lin_api_" + A34, "lin_api_****"),
    ("SG." + A16 + "ab." + A34, "SG.****"),
    ("key-" + HEX40[:32], "key-****"),
    ("secret_" + A34, "secret_****"),
    ("https://api.telegram.org/bot123456789:AA" + A34 + "/send",
     "https://api.telegram.org/bot123456789:****/send"),
    ("wandb: Appending key for api.wandb.ai to your netrc file: /root/.netrc " + HEX40,
     "wandb: Appending key for api.wandb.ai to your netrc file: /root/.netrc ****"),
    ("smbclient -U bob%hunter2 //x/y", "smbclient -U bob%**** //x/y"),
    ("mongosh -u bob -p hunter2 db", "mongosh -u bob -p **** db"),
    ("mysql -u root -phunter2 jobs", "mysql -u root -p**** jobs"),
    ("passwd hunter2", "passwd ****"),
    ("unzip -P hunter2 x.zip", "unzip -P **** x.zip"),
    ("7z x -phunter2 a.7z", "7z x -p**** a.7z"),
    ("openssl enc -pass pass:hunter2", "openssl enc -pass pass:****"),
    ("http --auth bob:hunter2 x", "http --auth bob:**** x"),
    ("srun --export=ALL,HF_TOKEN=hf_" + A34 + ",X=1 a", "srun --export=ALL,HF_TOKEN=**** a"),
    ("docker run -e API_KEY=" + A16 + " img", "docker run -e API_KEY=**** img"),
    ("enroot import docker://$oauthtoken:" + A34 + "@nvcr.io#x/y",
     "enroot import docker://$oauthtoken:****"),
    ("Namespace(hf_token='hf_" + A34 + "', lr=1e-5)", "Namespace(hf_token='****', lr=1e-5)"),
    ("{'env_vars': {'WANDB_API_KEY': '" + HEX40 + "', 'N': '1'}}",
     "{'env_vars': {'WANDB_API_KEY': '****', 'N': '1'}}"),
    ("git clone https://oauth2:glpat-" + A34 + "@gitlab.com/a/b",
     "git clone https://oauth2:****@gitlab.com/a/b"),
    ("jdbc:mysql://h/db?user=bob&password=hunter2", "jdbc:mysql://h/db?user=bob&password=****"),
]  # fmt: skip
SHAPES += MORE_SHAPES

HARMLESS = [
    "commit 0123456789abcdef0123456789abcdef01234567",
    "wandb: run at commit 0123456789abcdef0123456789abcdef01234567",
    "id 123e4567-e89b-12d3-a456-426614174000",
    "/scratch/alice/hf_local/models--Qwen--Qwen3-8B/snapshots/9c925d64d72725edaf899c6cb9c377fd0709d9c5",
    "step 1350 loss=1.232 grad_norm=0.21 dataset=finance_qa lr=1e-05",
    "#token: 284666, token usage: 0.78, gen throughput (token/s): 5702.24",
    "max_total_num_tokens=301188, max_new_tokens=4096",
    "KV cache pool is full. #new_token_ratio: 0.2811 -> 0.8110",
    "eos_token='<|im_end|>' pad_token=<pad> eos_token_id=151645",
    "bos_token: <|reserved_special_token_0|>",
    "TOKENIZERS_PARALLELISM=false",
    "HF_TOKEN_PATH=/home/alice/.cache/huggingface/token",
    "token=None password=None api_key=null",
    "serve --api-key $OPENAI_API_KEY --password ${DB_PASSWORD}",
    "--max-token 512 --loss-per-token true",
    "PWD=/home/alice OLDPWD=/tmp",
    "SyntaxError: unexpected token: foo",
    "harbor.trial - INFO - Trial task-4478__3af94f0aaaaaaaaaaaaaa finished, reward=0.0",
    "disk-0123456789abcdef0123 is full",
    "http://n90:5000/get_reward ssh://git@host:22/x",
    '[rank3]:   File "/opt/venv/lib/python3.12/site-packages/torch/autograd/graph.py", line 823',
    "actor_id=7e1f0a83d19c44f1, repr=<main_ppo.TaskRunner object at 0x7f2a1c0b6d10>",
    "Bearer authentication failed",
    "slurmstepd: error: *** JOB 17839483 ON gpu-017 CANCELLED DUE TO TIME LIMIT ***",
    "from sklearn import x; sk-learn is old",
    "KeyError: 'value'",
    "mysql -h db -P 3306 --ssl; mysql -p",
    "password authentication failed for user 'a1'; Password 2 of 3; passwd 3.5 s",
    "cat /etc/passwd /data/shard-00001.parquet",
    "sort_key=name primary_key=id key=value",
    "step:7 - rollout_corr/chi2_token:0.00016319751739501953 - actor/kl_token:-0.000129282474517",
    "'rewards/avg_pass_at_8': 0.5, 'num_pass': 12, eval_pass: True, first_pass=False",
    "pass@1 = 0.41, pass@8: 0.66, second pass: 12 of 90, bypass=none",
    "CACHE_KEY=step SORT_KEY: name PRIMARY_KEY=id MAX_KEY=12345678901234567890123",
    "pwd=/scratch/alice/run OLDPWD=$HOME Pwd: ~/x",
    "echo done | tee log.txt",
    "unzip data.zip; zip -r out.zip logs",
    "loss: 1.2 | tokens/s: 5702.24 | token_acc=0.91 | num_tokens=123456789 | token_accuracy: 0.7",
    "{'loss': 2.1, 'mean_token_accuracy': 0.8123456789012345678, 'num_tokens': 1048576.0}",
    "lm loss: 2.104512E+00 | loss scale: 1.0 | grad norm: 0.412 | tokens per sec 123456",
    "reward_key=accuracy metric_key=eval_loss grad_key: 0.1",
    "Started server process [1234567890]: AAA ready",
    "elapsed 12:34:56 key 17 of 40, access token limit 4096",
    "Setting pad_token_id to eos_token_id: 151645 for open-end generation.",
    "",
]

KEY = """-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gt
ZWQyNTUxOQAAACD=
-----END OPENSSH PRIVATE KEY-----
after"""


@pytest.mark.parametrize(("text", "expected"), SHAPES)
def test_a_secret_is_masked_and_its_name_stays(text: str, expected: str) -> None:
    assert mask(text) == expected


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize("text", [text for text, _ in SHAPES] + [KEY])
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = mask(text)
    assert mask(once) == once


def test_a_private_key_is_masked_line_by_line() -> None:
    assert mask(KEY) == (
        "-----BEGIN OPENSSH PRIVATE KEY-----\n****\n****\n-----END OPENSSH PRIVATE KEY-----\nafter"
    )


def test_a_private_key_with_something_before_each_line_is_masked():
    stamped = "\n".join("[rank0]: 10:00 " + line for line in KEY.split("\n")) + "\nstep 2"
    assert mask(stamped) == (
        "[rank0]: 10:00 -----BEGIN OPENSSH PRIVATE KEY-----\n"
        "[rank0]: 10:00 ****\n[rank0]: 10:00 ****\n"
        "[rank0]: 10:00 -----END OPENSSH PRIVATE KEY-----\n[rank0]: 10:00 after\nstep 2"
    )


def test_a_private_key_whose_beginning_was_cut_off_is_masked() -> None:
    torn = "\n".join(KEY.split("\n")[1:])
    assert mask("step 1: fine.\n" + torn) == (
        "step 1: fine.\n****\n****\n-----END OPENSSH PRIVATE KEY-----\nafter"
    )


def test_a_private_key_whose_end_was_cut_off_is_masked_up_to_the_next_log_line() -> None:
    torn = "\n".join(KEY.split("\n")[:2])
    assert mask(torn + "\n[rank0] step 2") == (
        "-----BEGIN OPENSSH PRIVATE KEY-----\n****\n[rank0] step 2"
    )


PIECES = st.sampled_from(
    [text for text, _ in SHAPES]
    + HARMLESS
    + [
        KEY,
        "\n",
        " ",
        '"',
        "'",
        "\\",
        ":",
        "=",
        "@",
        "://",
        "password",
        "token",
        "--",
        "****",
        "-----",
    ]
)
LINES = st.lists(PIECES | st.text(max_size=8), max_size=8).map("".join)


@settings(max_examples=400)
@given(LINES)
def test_any_text_is_masked_once_and_for_all(text: str) -> None:
    once = mask(text)
    assert mask(once) == once
    assert once.count("\n") == text.count("\n")


LONG = [
    "a", "-", "=", "\\", '"', "'", ":", " ", "\t", "eyJ", "eyJ.", "sk-", "hf_", "://", "://a:",
    "://a:b@", "password", "password=", 'password="', "password='\\", 'password=\\"', "--a-b-",
    "--token ", "--api-key -", "wandb key ", "curl -u ", "login x password ", "Bearer ", "cookie:",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----\n", "AAAA\n", "token=$", "?sig=",
    "authorization:", "sshpass -p", "docker login -p", "echo ", "echo a|", "setenv X_TOKEN ",
    "zip -P", "a login <<<",
    "mongo -p ", "123456789:AA", "X_KEY=", "A_KEY", "x_pass=", "-pass pass:", "smbclient -U a%",
    "SG.",
    "--auth a:", "access token ", "7z -p", "-----BEGIN PRIVATE KEY-----\nx AAAAAAAAAAAAAAAAAAA\n",
    "1//0", "secret_", "ENV _TOKEN ", "-p", "token ", "xapp-",
    "mysql ", "mysql -p", "mysql -x ", "redis-cli -a", "ldap", "passwd ", "passwd 1", "passwd a",
]  # fmt: skip


@pytest.mark.parametrize("piece", LONG)
def test_long_hostile_text_costs_time_in_proportion(piece: str) -> None:
    def cost(length: int) -> float:
        text = piece * (length // len(piece))
        runs = []
        for _ in range(3):
            began = time.process_time()
            mask(text)
            runs.append(time.process_time() - began)
        return min(runs)

    small, large = cost(8_000), cost(64_000)
    # Eight times the text: linear is 8 times the work, quadratic 64 times.
    assert large < 30 * max(small, 0.002)
