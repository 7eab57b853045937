"""Whether a protocol can be taken out; `python -m tools deletable` does that with all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.deletable import faults


@pytest.mark.timeout(60)
def test_nothing_breaks_without_a_protocol() -> None:
    """The row of this one is all that the rest knows of it."""
    assert faults("graphpipe") == []


def test_whoever_names_a_protocol_is_told(tmp_path: Path) -> None:
    """So is what the smoke test says; lazy names may lead to it, and its row is gone."""
    files = {
        "invoker/protocols/toy/session.py": "",
        "invoker/server/table.py": 'ROWS = (\n    "invoker.protocols.toy.service:Toy",\n)\n',
        "invoker/client/__init__.py": 'NAMES = {"Toy": "invoker.protocols.toy.client"}\n',
        "invoker/core/engine.py": "import os\nfrom invoker.protocols.toy import session\n",
        "functions/__init__.py": "",
        "benchmarks/__init__.py": "",
        "tools/smoke.py": "import os, sys\nprint(os.listdir('invoker/protocols'), sys.argv[1])\nsys.exit(1)\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    named = "invoker/core/engine.py:2 names it: from invoker.protocols.toy import session"
    assert faults("toy", tmp_path) == [named, "[] toy"]
