"""The examples of docs/how-to/drive-evergreen-from-python.md do what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving import ROOT, serving

PAGE = (ROOT / "docs" / "how-to" / "drive-evergreen-from-python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python ?(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
WITHIN = [code for kind, code in BLOCKS if kind in ("", "extensions")]
ALONE = [code for kind, code in BLOCKS if kind in ("program", "sync")]
SESSION = 'EvergreenSession("localhost:8081", extensions=("cancel", "partial-failures"))'


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("menu")
    (menu,) = (code for kind, code in BLOCKS if kind == "menu")
    (folder / "menu.py").write_text(menu, encoding="utf-8")
    with serving("menu", env={"PYTHONPATH": str(folder)}) as served:
        yield served.grpc


def run(code: str, target: str) -> str:
    """What a program prints that knows where the server is."""
    program = code.replace("localhost:8081", target)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", WITHIN)
def test_parts_work_within_a_session(target: str, code: str) -> None:
    """Each of them in a session of its own."""
    imports = "import asyncio\nfrom invoker.client import EvergreenSession\n"
    body = textwrap.indent(code, "        ")
    run(f"{imports}async def main():\n    async with {SESSION} as session:\n{body}\nasyncio.run(main())", target)


@pytest.mark.parametrize(("code", "printed"), list(zip(ALONE, ("I was shown 1", "I was shown 2"), strict=True)))
def test_programs_work(target: str, code: str, printed: str) -> None:
    """As they are printed."""
    assert run(code, target) == printed
