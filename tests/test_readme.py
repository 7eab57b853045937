"""The README, pasted by a newcomer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from invoker.testing import TestServer

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(\$ .*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a block, each with what it prints."""
    return [(one.partition("\n")[0], one.partition("\n")[2]) for one in block.split("$ ")[1:]]


@pytest.mark.timeout(60)
def test_the_commands_behind_make_run_work_as_pasted() -> None:
    """The function that `make run` serves answers both blocks of calls as the README prints it."""
    (served,) = re.findall(r"^FN \?= (\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    calls = [block for block in BLOCKS if "invoker call localhost:8081\n" in block]
    assert README.index("make run ") < README.index(calls[0])
    server = TestServer(served)
    try:
        done = 0
        for pasted, printed in (pair for block in calls for pair in commands(block)):
            line = pasted.replace("localhost:8081", server.grpc).replace("localhost:8080", server.http)
            line = re.sub(r"(\.venv/bin/invoker|python -m invoker)", f"{sys.executable} -m invoker", line)
            ran = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, cwd=ROOT, timeout=20)
            assert ran.stdout.splitlines() == printed.splitlines()
            done += 1
        assert done == 3
    finally:
        assert server.close() == 0
