"""CONTRIBUTING draws the rooms as the contract of layers has them."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def drawn(text: str) -> list[set[str]]:
    """The rooms of each line of the drawing, which stand in its first 27 columns."""
    block = text.partition("## The rooms\n")[2].split("```")[1]
    return [set(line[:27].split()) for line in block.strip().splitlines()]


def ruled(text: str) -> list[set[str]]:
    """The rooms of each layer of the contract, from the top, without what runs `python -m invoker`."""
    config = configparser.ConfigParser()
    config.read_string(text)
    lines = config["importlinter:contract:layers"]["layers"].split("\n")
    layers = [set(re.split(r"\s*\|\s*", line.strip())) for line in lines if line.strip()]
    return [one for one in layers if one != {"(__main__)"}]


def test_the_drawing_is_that_of_the_contract() -> None:
    """A room that is added, removed or moved to another layer is drawn anew."""
    assert drawn((ROOT / "CONTRIBUTING.md").read_text()) == ruled((ROOT / "setup.cfg").read_text())


def test_each_room_stands_in_the_drawing() -> None:
    """What lies in `invoker/` is there, and nothing else."""
    lies = {one.stem for one in (ROOT / "invoker").iterdir() if one.suffix in ("", ".py")}
    lies -= {"__init__", "__main__", "__pycache__"}
    assert set().union(*drawn((ROOT / "CONTRIBUTING.md").read_text())) == lies


WIRES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "invoker" / "protocols").rglob("wire.py")
)


@pytest.mark.parametrize("module", WIRES)
def test_the_wire_of_a_protocol_is_light(module: str) -> None:
    """What it says on the wire is shared with the client, and loads neither asyncio nor grpc; nor does `invoker`."""
    code = f"import sys, invoker, {module}; print(*({{'asyncio', 'grpc'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []
