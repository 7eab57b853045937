"""The command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import invoker
from invoker.cli import main as cli
from invoker.server import life


@pytest.fixture(autouse=True)
def _as_text(monkeypatch):
    """As on a terminal."""
    monkeypatch.setenv("INVOKER_LOG_FORMAT", "text")


@pytest.mark.parametrize("style", ["json", "auto", None, "nonsense"])
@pytest.mark.parametrize(
    ("env", "text", "code"),
    [
        ({}, "invoker: 'functions.square' has no 'squar'", 1),
        ({"GRPC_PORT": "abc"}, "invoker: GRPC_PORT is 'abc'", 2),
    ],
)
def test_R004_R008_why_it_does_not_start_is_an_object_where_the_log_is(capsys, monkeypatch, style, env, text, code):
    """Whether the log was set up or not: a collector of logs reads one kind of lines."""
    monkeypatch.delenv("INVOKER_LOG_FORMAT")
    for name, value in (env | ({} if style is None else {"INVOKER_LOG_FORMAT": style})).items():
        monkeypatch.setenv(name, value)
    code = 2 if style == "nonsense" else code
    text = "invoker: " if style == "nonsense" else text
    assert cli.main(["functions.square:squar"]) == code
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert line["message"].startswith(text)
    assert (line["level"], line["logger"]) == ("error", "invoker.cli.main")


@pytest.mark.parametrize("style", ["json", "auto", "text", None])
@pytest.mark.parametrize("how", ["flag", "flag=", "environment"])
@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("f", "--nope"), "error: there is no flag"),
        (("f", "g"), "error: 'g' is a second"),
        ((), "usage: "),
    ],
)
def test_R004_a_mistake_in_the_words_is_an_object_only_if_one_is_asked_for(capsys, monkeypatch, style, how, args, text):
    """By a flag, which wins over the environment; people type them, so text is the default, whoever reads it."""
    monkeypatch.delenv("INVOKER_LOG_FORMAT")
    asked: tuple[str, ...] = ()
    if how == "environment" or not args:
        monkeypatch.setenv("INVOKER_LOG_FORMAT", style or "")
    elif style is not None:
        monkeypatch.setenv("INVOKER_LOG_FORMAT", "text" if style == "json" else "json")
        asked = ("--log-format", style) if how == "flag" else (f"--log-format={style}",)
    with pytest.raises(SystemExit) as exit_:
        cli.main([*args, *asked])
    assert exit_.value.code == 2
    told = capsys.readouterr().err
    if style == "json":
        (line,) = map(json.loads, told.splitlines())
        assert (line["level"], line["logger"]) == ("error", "invoker.cli.main")
        told = line["message"]
    assert told.startswith(text)


@pytest.mark.parametrize(
    ("entrypoint", "text"),
    [
        ("functions.square:squar", "did you mean 'square'"),
        ("functions.sqare:square", "did you mean"),
        ("functions.square:__doc__", "cannot be called|not callable"),
    ],
)
def test_R008_an_entrypoint_that_cannot_be_served_is_exit_code_1(capsys, entrypoint, text):
    """One sentence with the fix, and no port is opened."""
    assert cli.main([entrypoint]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert re.search(text, lines[0])


def test_R004_a_bad_setting_is_exit_code_2(capsys, monkeypatch):
    """One line that names the variable and the value, no traceback."""
    monkeypatch.setenv("GRPC_PORT", "abc")
    assert cli.main(["functions.square:square"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "invoker: GRPC_PORT is 'abc'; expected a port number from 0 to 65535, where 0 takes a free one",
    ]


def test_a_module_that_is_not_there_may_have_been_a_command(capsys):
    """The sentence of the loader goes on with the command."""
    assert cli.main(["cal"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("invoker: there is no module 'cal'")
    assert line.endswith("; or did you mean 'call'?")


def test_version_is_told(capsys):
    """Of the package, by either name of the program."""
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"invoker {invoker.__version__}\n"
    done = subprocess.run(
        [sys.executable, "-m", "invoker", "--version"], capture_output=True, text=True, check=True, timeout=20
    )
    assert done.stdout == f"invoker {invoker.__version__}\n"


def test_a_variable_that_means_nothing_is_told_at_start(caplog, monkeypatch):
    """Once, as a warning, and the function is served all the same."""
    monkeypatch.setattr(life, "run", served_at_once)
    monkeypatch.setenv("INVOKER_THREDS", "3")
    assert cli.main(["functions.square:square"]) == 0
    (record,) = [one for one in caplog.records if "INVOKER_THREDS" in one.getMessage()]
    assert record.levelname == "WARNING"
    assert record.getMessage().endswith("did you mean INVOKER_THREADS?")


def test_a_variable_that_means_nothing_is_told_once(caplog, monkeypatch):
    """Who reloads leaves it to its child, a worker to its supervisor."""
    monkeypatch.setenv("INVOKER_THREDS", "3")
    monkeypatch.setattr("invoker.server.reload.serve_with_reload", lambda entrypoint, argv: 0)
    assert cli.main(["functions.square:square", "--reload"]) == 0
    monkeypatch.setenv("INVOKER_WORKER", "{}")
    monkeypatch.setattr("invoker.server.worker.Assignment.taken", lambda: None)
    monkeypatch.setattr("invoker.server.worker.work", lambda *_: 0)
    assert cli.main(["functions.square:square"]) == 0
    assert not [one for one in caplog.records if "INVOKER_THREDS" in one.getMessage()]


def test_reload_is_for_one_process(capsys):
    """Several workers take SIGHUP instead; the sentence says so."""
    assert cli.main(["functions.square:square", "--reload", "--workers", "2"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("invoker: --reload works with one process only, but 2 workers are set")
    assert "SIGHUP" in line


def test_one_worker_is_the_process_itself(monkeypatch):
    """Without a supervisor, whose module is not even imported."""
    monkeypatch.setitem(sys.modules, "invoker.server.supervisor", None)
    monkeypatch.setitem(sys.modules, "invoker.server.worker", None)
    monkeypatch.setattr(life, "run", served_at_once)
    assert cli.main(["functions.square:square", "--workers", "1"]) == 0
    with pytest.raises(ImportError):
        cli.main(["functions.square:square", "--workers", "2"])


async def served_at_once(server, **_):
    return 0


def test_no_entrypoint_is_a_usage_error(capsys):
    """Bare, the program lists its commands; a command says what it misses."""
    with pytest.raises(SystemExit) as left:
        cli.main([])
    assert left.value.code == 2
    error = capsys.readouterr().err
    assert "inspect ENTRYPOINT" in error
    assert "--host" not in error
    with pytest.raises(SystemExit) as left:
        cli.main(["serve"])
    assert left.value.code == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_inspect_and_help_are_commands(capsys):
    """Each command has its own help."""
    assert cli.main(["inspect", "functions.square:square"]) == 0
    assert "square" in capsys.readouterr().out
    for command in ("inspect", "conformance", "completion", "chat", "call", "device"):
        with pytest.raises(SystemExit) as left:
            cli.main([command, "--help"])
        assert left.value.code == 0
    assert "HOST:PORT" in capsys.readouterr().out


def test_a_bad_flag_is_named(capsys):
    """The flag, not the variable, when it came from the command line."""
    assert cli.main(["functions.square:square", "--loop", "nonsense"]) == 2
    assert "--loop is 'nonsense'" in capsys.readouterr().err
