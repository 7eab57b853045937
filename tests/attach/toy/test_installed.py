"""The toy protocol as a distribution of its own, which joins the table by an entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

from tools.server import serving

HERE = Path(__file__).parent
_POINTS = """[invoker.protocols]
echo = toy.service:EchoService
broken = toy.broken:Service
nothing = toy.service:EchoSettings
taken = toy.others:Riff
tomorrow = toy.others:Tomorrow
"""
_OTHERS = """from invoker.attach.service import Service


class Riff(Service):
    name = "riff"
    interface = 1


class Tomorrow(Service):
    name = "tomorrow"
    interface = 99
"""
_LEFT_OUT = {
    "broken": "ImportError: it is broken",
    "nothing": "<class 'toy.service.EchoSettings'> is not a subclass of invoker.attach.service.Service",
    "taken": "there is a protocol named 'riff' already",
    "tomorrow": "it was written for version 99 of the interface of services; this invoker has version 1",
}


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """What a wheel puts on a path; the variables by which a process finds it."""
    package, info = tmp_path / "toy", tmp_path / "toy-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    for name in ("protocol.py", "service.py"):
        text = (HERE / name).read_text(encoding="utf-8").replace("tests.attach.toy.", "toy.")
        (package / name).write_text(text, encoding="utf-8")
    (package / "__init__.py").touch()
    (package / "broken.py").write_text('raise ImportError("it is broken")\n', encoding="utf-8")
    (package / "others.py").write_text(_OTHERS, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(_POINTS, encoding="utf-8")
    return {"PYTHONPATH": str(tmp_path), "INVOKER_LOG_FORMAT": "text"}


@pytest.mark.timeout(60)
def test_an_installed_protocol_is_served_beside_ours(installed: dict[str, str], tmp_path: Path) -> None:
    """Each one that does not fit, or cannot be imported, is left out with a sentence, and the others are served."""
    log = tmp_path / "log"
    with (
        serving("functions.square:square", env=installed, log=log) as server,
        grpc.insecure_channel(server.grpc) as channel,
    ):
        assert list(channel.stream_stream("/toy.Toy/Echo")(iter((b"7",)), timeout=30)) == [b"49"]
    said = log.read_text(encoding="utf-8")
    for name, why in _LEFT_OUT.items():
        assert said.count(f"the protocol '{name}' of another distribution is left out: {why}") == 1


def test_its_settings_are_those_of_the_process(installed: dict[str, str]) -> None:
    """The help has its flag and its name."""
    shown = subprocess.run(
        [sys.executable, "-m", "invoker", "--help"],
        env={**os.environ, **installed}, check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "--echo-path" in shown.stdout
    assert "INVOKER_ECHO_PATH" in shown.stdout
    assert not shown.stderr
