"""Arguments, selection and exit codes of the suite as a program."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from invoker_conformance import SCENARIOS, main, select
from invoker_conformance.scenario import PROTOCOLS
from tests.conformance.faulty import Peer
from tests.conformance.graphpipe.peer import LIMIT_BYTES
from tests.conformance.graphpipe.peer import Peer as Models

ROOT = Path(__file__).parents[2]


async def ran(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the program, in a process of its own: two loops of one process share a poller."""
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "invoker_conformance",
        *arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT / "conformance",
    )
    out, err = await program.communicate()
    assert program.returncode is not None
    return program.returncode, out.decode(), err.decode()


async def test_exit_code_0_when_nothing_failed() -> None:
    """The table lists the requirements that were judged, and ends with the summary."""
    async with Peer() as peer:
        code, out, err = await ran("--target", peer.address, "--only", "RT-07,R-048", "--verbose")
    assert code == 0
    assert out.splitlines()[0] == f"riff conformance of {peer.address}"
    assert out.splitlines()[-1] == "PASSED: requirements 1 pass; decisions 1 pass; scenarios 2 pass"
    assert "pass         second_start" in err


async def test_exit_code_1_when_something_failed() -> None:
    """The failure is told in full; the address of one function is called without metadata."""
    async with Peer("own prefix", serves="square") as peer:
        code, out, _ = await ran("--target", f"square={peer.address}", "--only", "second_start")
    assert code == 1
    assert "breaks:   R-046" in out


async def test_reports_go_to_files_and_stdout(tmp_path: Path) -> None:
    """With --json - stdout holds nothing but the JSON."""
    junit = tmp_path / "junit.xml"
    async with Peer() as peer:
        code, out, _ = await ran("--target", peer.address, "--only", "rt-01", "--json", "-", "--junit", str(junit))
    assert code == 0
    assert json.loads(out)["passed"] is True
    assert junit.read_text().startswith("<?xml")


async def test_models_are_judged_as_they_are_configured() -> None:
    """The suite is told of sockets, limits and choices; what it is not told of is not provided."""
    async with Models(timeout_s=0.3) as peer:
        given = ["--http", peer.http, "--graphpipe-tcp", peer.tcp, "--graphpipe-root", "--graphpipe-timeout-s", "0.3"]
        given += ["--graphpipe-bytes", str(LIMIT_BYTES), "--only", "G-009,GT-54,inference_takes_too_long"]
        code, out, err = await ran("--protocol", "graphpipe", *given, "--verbose")
    assert code == 0, out
    assert out.splitlines()[0] == f"graphpipe conformance of http {peer.http}, {peer.tcp}"
    assert "not provided errors_with_status_200" in err
    assert len([line for line in err.splitlines() if line.startswith("pass ")]) == 3


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "name a --target"),
        (["--protocol", "graphpipe", "--target", "a:1"], "name an --http"),
        (["--protocol", "graphpipe", "--http", "a:1", "--graphpipe-tcp", "nowhere"], "neither HOST:PORT"),
        (["--target", "nowhere"], "neither HOST:PORT"),
        (["--target", "a:1", "--only", "R-999"], "no scenario judges 'R-999'"),
        (["--target", "a:1", "--chapter", "teapots"], "no chapter 'teapots'"),
        (["--target", "127.0.0.1:1", "--timeout", "0.2", "--only", "RT-01"], "nothing answers at 127.0.0.1:1"),
    ],
)
def test_exit_code_2_when_it_cannot_judge(arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One line on stderr says why."""
    assert main(arguments) == 2
    assert text in capsys.readouterr().err


def test_the_list_names_every_scenario(capsys: pytest.CaptureFixture[str]) -> None:
    """No target is needed for it."""
    for protocol in PROTOCOLS:
        assert main(["--list", "--protocol", protocol]) == 0
        assert len(capsys.readouterr().out.splitlines()) == len(select(protocol=protocol))
    assert main(["--list", "--protocol", "all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(SCENARIOS)


def test_a_chapter_and_ids_narrow_the_choice() -> None:
    """Ids of requirements, ids of scenarios and names are understood, without regard to case."""
    assert {scenario.name for scenario in select(only="r-046")} == {"second_start", "start_after_data"}
    assert {scenario.chapter for scenario in select(chapters="flow, grammar")} == {"flow", "grammar"}
    assert [scenario.name for scenario in select(only="RT-42", chapters="flow")] == ["interleaved_10k"]
    with pytest.raises(ValueError, match="no scenario judges 'RT-42'"):
        select(only="RT-42", chapters="http")


def test_a_timeout_must_be_a_positive_number() -> None:
    """argparse refuses it."""
    for text in ("0", "-1", "soon", "inf"):
        with pytest.raises(SystemExit):
            main(["--target", "a:1", "--timeout", text])
