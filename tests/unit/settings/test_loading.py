import errno
import os
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from jobmond.errors import ConfigError
from jobmond.model.job import ClassifyRule
from jobmond.model.state import Bucket
from jobmond.settings import Settings, load
from jobmond.settings.clusters import IrisCluster, KubernetesCluster, LocalCluster, SlurmCluster
from tests.unit.settings.conftest import Read


def test_no_file_is_this_host(env: dict[str, str]) -> None:
    loaded = load(None, env)
    settings, state = loaded.settings, Path(env["HOME"]) / ".local/state/jobmond"
    assert loaded.path is None
    assert loaded.warnings == ()
    assert settings.clusters == {"local": LocalCluster(kind="local", discover=True)}
    assert settings.poll_interval == timedelta(minutes=15)
    assert settings.recent == timedelta(hours=24)
    assert settings.database.url == f"sqlite:///{state}/jobmond.db"
    assert settings.agent_logs == state / "agent_logs"
    assert {name: sink.kind for name, sink in settings.sinks.items()} == {
        "journal": "journal",
        "news": "file",
    }
    assert settings.sinks["news"].options == {"path": state / "news.jsonl"}


def test_the_state_directory_of_a_service(env: dict[str, str]) -> None:
    settings = load(None, env | {"STATE_DIRECTORY": "/var/lib/jobmond"}).settings
    assert settings.database.url == "sqlite:////var/lib/jobmond/jobmond.db"
    odd = load(None, env | {"STATE_DIRECTORY": "/var/lib/a?b c"}).settings.database.url
    assert odd == "sqlite:////var/lib/a%3Fb%20c/jobmond.db"
    assert settings.sinks["news"].options["path"] == Path("/var/lib/jobmond/news.jsonl")


def test_clusters_of_every_kind(read: Read) -> None:
    settings = read(
        """
        [clusters.leonardo]
        kind = "slurm"
        host = ["login1.example", "login2.example"]
        user = "alice"
        users = ["alice", "bob"]
        benign = ['No available shared memory broadcast block found']
        [clusters.here]
        kind = "slurm"
        transport = "local"
        [clusters.k8s]
        kind = "kubernetes"
        namespaces = ["team"]
        [clusters.iris]
        kind = "iris"
        url = "http://iris.example:10000"
        auth_command = "token --print"
        """
    ).settings
    kinds = {name: type(cluster) for name, cluster in settings.clusters.items()}
    assert kinds == {
        "leonardo": SlurmCluster,
        "here": SlurmCluster,
        "k8s": KubernetesCluster,
        "iris": IrisCluster,
    }
    assert settings.clusters["leonardo"].host == ("login1.example", "login2.example")
    assert settings.clusters["iris"].auth_command == ("token", "--print")
    assert not settings.clusters["leonardo"].discover


def test_a_controller_is_reached_over_http_and_nothing_secret_is_in_its_address(
    read: Read,
) -> None:
    loaded = read('[clusters.pond]\nkind = "iris"\nurl = "https://iris.example/api/"')
    assert loaded.warnings == ()
    cluster = loaded.settings.clusters["pond"]
    assert isinstance(cluster, IrisCluster)
    assert (cluster.url, cluster.max_misses) == ("https://iris.example/api", 3)
    assert cluster.call_timeout == timedelta(seconds=20)
    for url, why in (
        ("iris.example:10000", "expected http://HOST:PORT"),
        ("ftp://iris.example", "expected http://HOST:PORT"),
        ("http://iris.example:port", "expected http://HOST:PORT"),
        ("http://alice:secret@iris.example", "no user or password here: use auth_header_file"),
        ("http://iris.example/?token=x", r"no \? and no # in it"),
    ):
        with pytest.raises(ConfigError, match=f"clusters.pond.url: {why}") as wrong:
            read(f'[clusters.pond]\nkind = "iris"\nurl = "{url}"')
        assert "secret" not in str(wrong.value)


def test_every_kind_is_polled(read: Read) -> None:
    loaded = read(
        """
        [clusters.k8s]
        kind = "kubernetes"
        [clusters.iris]
        kind = "iris"
        url = "http://iris.example:10000"
        """
    )
    assert loaded.warnings == ()


def test_everything_that_may_be_set_has_an_effect(read: Read) -> None:
    loaded = read(
        """
        [nel]
        home = "/srv/nel"
        [launcher]
        [policy]
        on_collapse = "cancel"
        [clusters.x]
        kind = "local"
        ckpt_dirs = ["/x"]
        """
    )
    assert loaded.warnings == ()


def test_the_sink_of_registry_files_is_nobody_s_to_configure(read: Read) -> None:
    with pytest.raises(ConfigError, match="registry-file is set up by registry_files alone"):
        read('[sinks.x]\nkind = "registry-file"')


def test_classify_tables_are_the_rules_of_the_decisions(read: Read) -> None:
    settings = read(
        r"""
        [[classify]]
        name = '^rl__(?P<cell>.*)__seqnorm'
        bucket = "rl"
        labels = ["agentic", "seqnorm"]
        run = '\g<cell>'
        type = "rl"
        """
    ).settings
    assert settings.classify_rules == (
        ClassifyRule(
            name="^rl__(?P<cell>.*)__seqnorm",
            bucket=Bucket.RL,
            labels=("agentic", "seqnorm"),
            run=r"\g<cell>",
            type="rl",
        ),
    )


def test_paths_are_absolute(read: Read, tmp_path: Path, env: dict[str, str]) -> None:
    settings = read(
        """
        agent_logs = "~/entries"
        socket = "run/socket"
        registry_files = ["~/.claude/*/active_jobs.json", "/srv/active_jobs.json"]
        [clusters.local]
        kind = "local"
        ops_file = ".agents/ops/local/ops.md"
        """
    ).settings
    assert settings.agent_logs == Path(env["HOME"]) / "entries"
    assert settings.socket == tmp_path / "run/socket"
    assert settings.registry_files == (
        f"{env['HOME']}/.claude/*/active_jobs.json",
        "/srv/active_jobs.json",
    )
    assert settings.clusters["local"].ops_file == tmp_path / ".agents/ops/local/ops.md"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("pol_interval = 1", "unknown key pol_interval; nearest: poll_interval"),
        (
            '[clusters.leonardo]\nkind = "slurm"\nhost = "h"\nhots = "x"',
            "unknown key clusters.leonardo.hots in [clusters.leonardo]; nearest: host",
        ),
        (
            '[clusters.local]\nkind = "local"\nhost = "h"',
            "unknown key clusters.local.host in [clusters.local]",
        ),
        ("[databse]", "unknown key databse; nearest: database"),
        ("[database]\nulr = 1", "unknown key database.ulr in [database]; nearest: url"),
        (
            "[[classify]]\nname = 'x'\n[[classify]]\nnaem = 'y'",
            "unknown key classify[1].naem in [classify[1]]; nearest: name",
        ),
        (
            '[clusters.x]\nkind = "slrum"',
            "clusters.x.kind: unknown kind 'slrum'; nearest: slurm",
        ),
        ("[clusters.x]", "clusters.x.kind is missing: slurm, kubernetes, iris or local"),
        ('[clusters.x]\nkind = "iris"', "clusters.x.url is missing"),
        (
            '[clusters.x]\nkind = "slurm"',
            "clusters.x: host is missing, transport ssh needs it",
        ),
        (
            'poll_interval = "soon"',
            "poll_interval: expected a duration such as 30s, 15m, 24h, 7d or a number of seconds",
        ),
        ("poll_interval = 0", "poll_interval: must be at least 1s"),
        ('jitter = "15m"', "jitter must be shorter than poll_interval"),
        ('backoff_max = "1s"', "backoff_max is shorter than backoff_min"),
        (
            "[clusters.'a/b']\nkind = 'local'",
            "clusters.a/b: not a name (letters, digits, dot, dash and underscore, no slash,"
            " at most 64): 'a/b'",
        ),
        (
            "[[classify]]\nname = '('",
            "classify[0].name: not a regular expression:"
            " missing ), unterminated subpattern at position 0",
        ),
        (
            "[[classify]]\nbucket = 'rl'",
            "classify[0]: needs at least one of name, partition, account, comment, workdir",
        ),
        (
            "[[classify]]\nname = '(?P<a>x)'\nrun = '\\g<b>'",
            r"classify[0]: run refers to a group that name does not have: '\\g<b>'",
        ),
        (
            "[[classify]]\nname = 'x'\nbucket = 'lr'",
            "classify[0].bucket: expected 'rl', 'sft', 'datagen', 'eval' or 'other'",
        ),
        ("[policy]\non_collapse = 'x'", "policy.on_collapse: expected 'recommend' or 'cancel'"),
        (
            "[database]\nurl = 'mysql://h/d'",
            "database.url: expected sqlite:////PATH or postgresql+psycopg://HOST/NAME",
        ),
        ("clusters = 3", "clusters: expected a table"),
        (
            "[sinks.x]\nkind = 'pigeon'",
            "sinks.x.kind: sink 'pigeon' is not available in this version",
        ),
        ("[sinks.x]\npath = 'x'", "sinks.x.kind is missing"),
        ("[sinks.x]\nkind = 'file'", "sinks.x.path is missing"),
        (
            "[sinks.x]\nkind = 'file'\npaht = 'x'",
            "unknown key sinks.x.paht in [sinks.x]; nearest: path (and 1 more)",
        ),
        (
            "[sinks.x]\nkind = 'hook'\nurl = 'https://secret'",
            "unknown key sinks.x.url in [sinks.x]; nearest: url_file",
        ),
        (
            "[rules.test-hedl]\nminutes = 1",
            "rules.test-hedl: rule 'test-hedl' is not available in this version;"
            " nearest: test-held",
        ),
        (
            "[rules.test-held]\nminuets = 1",
            "unknown key rules.test-held.minuets in [rules.test-held]; nearest: minutes",
        ),
        (
            "[rules.test-held]\nminutes = 'long'",
            "rules.test-held.minutes: expected a valid number, unable to parse string as a number",
        ),
        (
            "[clusters.x]\nkind = 'slurm'\nhost = 'h'\ntransport = 'pigeon'",
            "clusters.x.transport: transport 'pigeon' is not available in this version",
        ),
    ],
)
def test_one_clear_line(read: Read, tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path}/config.toml: ")
    assert said.removeprefix(f"{tmp_path}/config.toml: ").split("; known: ")[0] == complaint
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (b"a = 1\nb = = 2\n", "line 2, column 5: not TOML: Invalid value"),
        (b"a = 1\nb = [1,\n", "line 3: not TOML: Invalid value"),
        (b"a = 1\na = 2\n", "line 2, column 6: not TOML: Cannot overwrite a value"),
        (b"a = 1\nb = '\xff'\n", "line 2: not UTF-8"),
        (b"a = " + b"[" * 5000, "nested too deeply"),
    ],
)
def test_what_is_no_toml(env: dict[str, str], tmp_path: Path, raw: bytes, complaint: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load(path, env)
    assert str(caught.value) == f"{path}: {complaint}"


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_are_loaded_or_refused(env: dict[str, str], tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(raw)
    try:
        load(path, env)
    except ConfigError as refused:
        assert "\n" not in str(refused)


def test_a_file_that_cannot_be_read(env: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing.toml: No such file or directory$"):
        load(tmp_path / "missing.toml", env)
    with pytest.raises(ConfigError, match=r"not a regular file$"):
        load(tmp_path, env)


def test_a_file_that_may_not_be_read(
    env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    (tmp_path / "config.toml").touch()
    monkeypatch.setattr(Path, "open", refuse)  # root, who may run this, may read everything
    with pytest.raises(ConfigError, match=r"config.toml: Permission denied$"):
        load(tmp_path / "config.toml", env)


def test_a_missing_key_file(read: Read, tmp_path: Path) -> None:
    text = '[clusters.x]\nkind = "slurm"\nhost = "h"\nidentity_file = "id_ed25519"\n'
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert str(caught.value).endswith(
        f"clusters.x.identity_file: {tmp_path}/id_ed25519: No such file or directory"
    )
    assert read(text + "active = false").settings.clusters["x"].identity_file == (
        tmp_path / "id_ed25519"
    )
    (tmp_path / "id_ed25519").touch()
    assert read(text).settings.clusters["x"].active


def test_a_missing_secret_of_a_sink(read: Read, tmp_path: Path) -> None:
    text = '[sinks.x]\nkind = "hook"\nurl_file = "url"\n'
    with pytest.raises(ConfigError, match=r"sinks.x.url_file: .*/url: No such file"):
        read(text)
    (tmp_path / "url").touch()
    assert read(text).settings.sinks["x"].options == {"url_file": tmp_path / "url"}


def test_secrets_stay_out_of_errors_and_representations(read: Read) -> None:
    url = "postgresql+psycopg://me:hunter2@db/jobmond"
    settings = read(f"[database]\nurl = '{url}'\n[sinks.x]\nkind='hook'\nformat='hunter2'").settings
    assert settings.database.url == url
    assert "hunter2" not in repr(settings)
    with pytest.raises(ConfigError) as caught:
        read("[database]\nurl = 'hunter2://me:hunter2@db/jobmond'")
    assert "hunter2" not in str(caught.value)


def test_a_short_period_has_a_short_jitter(read: Read) -> None:
    assert read("poll_interval = 30").settings.jitter == timedelta(seconds=2)
    assert read('poll_interval = 30\njitter = "0s"').settings.jitter == timedelta(0)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().recent = timedelta(0)  # type: ignore[misc] # frozen, which is what is tested


def test_settings_by_themselves_read_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLL_INTERVAL", "5m")
    monkeypatch.setenv("recent", "1h")
    assert Settings().poll_interval == timedelta(minutes=15)
    assert Settings().recent == timedelta(hours=24)


@pytest.fixture
def webhook(tmp_path: Path) -> str:
    """A table of the real webhook."""
    (tmp_path / "url").touch()
    return '[sinks.team]\nkind = "webhook"\nurl_file = "url"\n'


def test_a_webhook(read: Read, webhook: str, tmp_path: Path) -> None:
    more = 'format = "generic"\ntimeout = "30s"\ngive_up_after = "12h"\nspool = 5\nmax_bytes = 9000'
    assert read(webhook + more).settings.sinks["team"].options == {
        "url_file": tmp_path / "url",
        "format": "generic",
        "timeout": timedelta(seconds=30),
        "give_up_after": timedelta(hours=12),
        "spool": 5,
        "max_bytes": 9000,
    }


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('format = "slack"', "sinks.team.format: expected 'generic'"),
        ('timeout = "soon"', "sinks.team.timeout: expected a duration such as 30s"),
        ('secret_file = "none"', "sinks.team.secret_file: "),
        ('url = "https://h/"', "unknown key sinks.team.url in [sinks.team]"),
        ('http = "x"', "unknown key sinks.team.http in [sinks.team]"),
        ('clock = "x"', "unknown key sinks.team.clock in [sinks.team]"),
    ],
)
def test_a_webhook_that_is_wrong(read: Read, webhook: str, line: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(webhook + line)
    assert said in str(caught.value)
    assert "https://h/" not in str(caught.value)
