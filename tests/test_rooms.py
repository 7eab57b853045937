"""CONTRIBUTING draws the rooms as the contract of layers has them."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

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
