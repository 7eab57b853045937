"""The tutorial, run as a reader would."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "tutorial" / "first-function.md"
BLOCK = re.compile(r"^```(\S+)(?: (\w+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(60)
def test_the_tutorial_works(tmp_path, monkeypatch):
    """Every command of the page does what the page says, on free ports."""
    from invoker.testing import TestServer

    blocks = BLOCK.findall(PAGE.read_text())
    (code,) = [text for kind, _, text in blocks if kind == "python"]
    (tmp_path / "stats.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    commands = [(mark, text.strip()) for kind, mark, text in blocks if kind == "sh"]
    (serve,) = [text for mark, text in commands if mark == "server"]
    server = TestServer(serve.removeprefix("python -m invoker "))
    printed = []
    try:
        for mark, text in commands:
            if mark == "server":
                continue
            line = text.replace("localhost:8081", server.grpc).replace("localhost:8080", server.http)
            line = line.replace("python -m", f"{sys.executable} -m")
            done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
            assert (done.returncode != 0) is (mark == "fails"), done.stderr
            printed.append(done.stdout + done.stderr)
    finally:
        assert server.close() == 0
    inspected, means, single, refused = printed
    assert "streaming" in inspected
    (wanted,) = [text for kind, _, text in blocks if kind == "output"]
    assert means == wanted
    assert single == "5.0"
    assert "Invoker: Bad Input Signal" in refused
