"""``invoker simulate`` as a command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from invoker.cli.main import main
from tests.protocols.federated.verbs.simulation.scenes import HERE, rounds

ROOT = Path(__file__).resolve().parents[4]


def test_rounds_are_shown_as_they_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "simulate",
        rounds(tmp_path),
        "--devices",
        "25",
        "--examples",
        f"{HERE}:examples",
        "--metric",
        f"{HERE}:level",
    ]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert out.count("p/train round ") == 2
    assert out.count("  metric  ") == 2
    assert "2 of 2 rounds committed" in out


def test_json_is_alone_on_the_output_and_the_same_each_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", rounds(tmp_path), "--devices", "25", "--updates", f"{HERE}:given", "--dropout", "0.2"]
    words += ["--rounds", "1", "--seed", "7", "--json"]
    told = []
    for _ in range(2):
        assert main(words) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    found = json.loads(told[0])
    assert found["given"]["seed"] == 7
    assert [one["outcome"] for one in found["rounds"]] == ["committed"]


def test_too_few_devices_end_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", rounds(tmp_path), "--devices", "2", "--updates", f"{HERE}:given"]) == 1
    assert "ended early: no round of 'p' can take place" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--dropout", "1.5"], "'1.5' is not a probability"),
        (["--latency", "x"], "'x' is not a distribution"),
        (["--devices", "0"], "'0' is not a count"),
        (["--seed", "-1"], "'-1' is not a whole number"),
        (["--every-s", "1..2"], "'1..2' is not a time"),
        (["--updates", "nowhere:fn"], "--updates nowhere:fn cannot be imported"),
    ],
)
def test_wrong_arguments_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    code: object
    try:
        code = main(["simulate", rounds(tmp_path), *words])
    except SystemExit as left:
        code = left.code
    assert code == 2
    assert why in capsys.readouterr().err


def test_an_interrupt_tells_what_is_known(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "invoker", "simulate", rounds(tmp_path, rounds=100_000), "--devices", "25"]
    words += ["--updates", f"{HERE}:given"]
    process = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    assert "round 1" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert "rounds committed in" in out
    assert "ended early: interrupted" in errors
    assert process.returncode == 130
