"""The chat tutorial, run as a reader would."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from invoker.testing import TestServer

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "tutorial" / "chat.md"
BLOCK = re.compile(r"^```(sh|python|input|output)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def steps() -> list[dict[str, str]]:
    """The commands of the page in their order: each with what is typed then, and what is printed at the end."""
    found: list[dict[str, str]] = []
    for kind, mark, text in BLOCK.findall(PAGE.read_text()):
        if kind in ("sh", "python"):
            found.append({"kind": kind, "mark": mark, "text": text.strip()})
        else:
            found[-1][kind] = text
    return found


def run(line: str, typed: str) -> subprocess.CompletedProcess[str]:
    """Run a command line, with the lines that a reader types."""
    line = line.replace("python -m", f"{sys.executable} -m")
    return subprocess.run(["sh", "-c", line], input=typed, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.timeout(120)
def test_the_tutorial_works(tmp_path, monkeypatch):
    """Every command of the page does what the page says, on free ports."""
    shutil.copytree(ROOT / "functions", tmp_path / "functions")
    monkeypatch.chdir(tmp_path)
    server = None
    printed = []
    try:
        for step in steps():
            if step["kind"] == "python":
                (tmp_path / "echo.py").write_text(step["text"] + "\n")
            elif step["mark"] == "server":
                if server is not None:
                    assert server.close() == 0
                server = TestServer(step["text"].removeprefix("python -m invoker "))
                assert "riff+evergreen+http" in server.log()
            else:
                assert server is not None
                done = run(step["text"].replace("localhost:8081", server.grpc), step.get("input", ""))
                assert (done.returncode != 0) is (step["mark"] == "fails"), done.stderr
                assert done.stdout.endswith(step.get("output", "")), done.stdout
                printed.append(done.stdout + done.stderr)
    finally:
        if server is not None:
            server.close()
    talk, _, shown, short, refused, _ = printed
    first, second, third = talk.splitlines()
    assert "tarts" in first
    assert "Hatter" in second
    assert "tarts" in second
    assert "Ada" in third
    assert shown.startswith("I have read note.txt (41 bytes). ")
    assert len(short.split()) <= 8
    assert "temperature" in refused
