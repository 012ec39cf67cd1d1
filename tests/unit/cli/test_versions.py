"""A daemon of another version: one line, beside the output."""

from jobmond import __version__

OTHER = "0.0.1"


def test_another_version_is_said_once_and_the_answer_stands(fake, ctl, document):
    fake.version = OTHER
    fake.on("GET /v1/status", document())
    result = ctl("status", "--json")
    assert (result.exit_code, result.stdout.startswith("{")) == (0, True)
    [line] = result.stderr.splitlines()
    assert line.startswith(f"jobmonctl: the daemon is version {OTHER}, this is {__version__}: ")


def test_it_is_said_once_however_often_the_command_asks(fake, ctl, document, time):
    fake.version = OTHER
    fake.on("GET /v1/status", document())

    def enough() -> None:
        if len(time.pauses) == 3:
            raise KeyboardInterrupt

    time.on_pause = enough
    result = ctl("status", "--watch")
    assert len(fake.queries("GET /v1/status")) == 3
    assert result.stderr.count("the daemon is version") == 1


def test_a_refusal_of_another_version_says_so_too(fake, ctl):
    fake.version = OTHER
    result = ctl("rm", "4711")  # a route that the double does not have
    assert result.exit_code == 1
    assert f"the daemon is version {OTHER}" in result.stderr.splitlines()[0]


def test_the_same_version_is_not_worth_a_word(fake, ctl, document):
    fake.version = __version__
    fake.on("GET /v1/status", document())
    assert ctl("status").stderr == ""


def test_a_version_cannot_act_on_the_terminal(fake, ctl, document):
    fake.version = "0\x9b31m1"
    fake.on("GET /v1/status", document())
    assert "\x9b" not in ctl("status").stderr
