"""``invoker inspect rounds.toml``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from invoker.cli.main import main
from tests.protocols.federated.service.devices import rounds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "rounds.toml"
    made.write_text(rounds("iris", "rose", clients=3, most=5))
    return made


def test_rounds_are_shown_as_they_were_understood(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the functions that aggregate them, once each."""
    assert main(["inspect", str(path)]) == 0
    told = capsys.readouterr().out
    assert told.count("tests.protocols.federated.service.functions:add") == 3
    assert "population iris\n  task train: tests.protocols.federated.service.functions:add\n" in told
    assert "devices   3 to 5, goal 3, 3 are accepted" in told
    assert "rounds    for ever; plan of 63 bytes, first checkpoint of 3 bytes" in told


def test_rounds_are_told_to_programs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By JSON."""
    assert main(["inspect", "--json", str(path)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told["functions"]] == ["add"]
    assert [(one["name"], one["tasks"][0]["goal_clients"]) for one in told["rounds"]] == [("iris", 3), ("rose", 3)]


def test_F137_what_is_wrong_is_told_before_it_is_served(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit code is not 0."""
    monkeypatch.setenv("INVOKER_HOST", "127.0.0.1")
    path.write_text(rounds(aggregate="absent"))
    assert main(["inspect", str(path)]) != 0
    assert "population 'iris', task 'train': " in capsys.readouterr().err
    assert main([str(path)]) != 0
    assert "population 'iris', task 'train': " in capsys.readouterr().err


def test_a_file_of_rounds_must_be_among_what_is_served(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the protocols leave federated out, nothing is served in its place."""
    monkeypatch.setenv("INVOKER_HOST", "127.0.0.1")
    assert main([str(path), "--protocols", "riff"]) == 2
    assert "which INVOKER_PROTOCOLS leaves out" in capsys.readouterr().err
    assert main([str(path), "--reload-per-invocation"]) == 2
    assert "--reload-per-invocation serves one entrypoint" in capsys.readouterr().err
