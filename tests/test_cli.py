"""The command line."""

from __future__ import annotations

import re
import sys

import pytest

from invoker import cli
from invoker.config import flag_of, knobs
from invoker.server import Server


@pytest.fixture(autouse=True)
def _quiet(monkeypatch):
    monkeypatch.setattr("invoker.ops.logs.set_up", lambda level, style: None)


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


def test_R004_a_bad_knob_is_exit_code_2(capsys, monkeypatch):
    """One line that names the variable and the value, no traceback."""
    monkeypatch.setenv("GRPC_PORT", "abc")
    assert cli.main(["functions.square:square"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "invoker: GRPC_PORT is 'abc'; expected a port number from 0 to 65535, where 0 takes a free one",
    ]


def test_every_knob_is_a_flag():
    """With its variable and default in the help."""
    text = cli.parser().format_help()
    assert all(flag_of(one) in text for one in knobs())
    assert "GRPC_PORT" in text


def test_reload_is_for_one_process(capsys):
    """Several workers take SIGHUP instead; the sentence says so."""
    assert cli.main(["functions.square:square", "--reload", "--workers", "2"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("invoker: --reload serves with one process, and there are to be 2 workers")
    assert "SIGHUP" in line


def test_one_worker_is_the_process_itself(monkeypatch):
    """Without a supervisor, whose module is not even imported."""
    monkeypatch.setitem(sys.modules, "invoker.supervisor", None)
    monkeypatch.setitem(sys.modules, "invoker.worker", None)
    monkeypatch.setattr(Server, "run", served_at_once)
    assert cli.main(["functions.square:square", "--workers", "1"]) == 0
    with pytest.raises(ImportError):
        cli.main(["functions.square:square", "--workers", "2"])


async def served_at_once(self):
    return 0


def test_no_entrypoint_is_a_usage_error(capsys):
    """argparse says what is missing."""
    with pytest.raises(SystemExit) as left:
        cli.main([])
    assert left.value.code == 2
    assert "ENTRYPOINT" in capsys.readouterr().err


def test_inspect_and_help_are_commands(capsys):
    """Each command has its own help."""
    assert cli.main(["inspect", "functions.square:square"]) == 0
    assert "square" in capsys.readouterr().out
    for command in ("call", "chat", "inspect", "conformance"):
        with pytest.raises(SystemExit) as left:
            cli.main([command, "--help"])
        assert left.value.code == 0
    assert "HOST:PORT" in capsys.readouterr().out


def test_a_bad_flag_is_named(capsys):
    """The flag, not the variable, when it came from the command line."""
    assert cli.main(["functions.square:square", "--loop", "nonsense"]) == 2
    assert "--loop is 'nonsense'" in capsys.readouterr().err
