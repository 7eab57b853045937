"""CONTRIBUTING draws the rooms as the contract of layers has them, and a wire is what its docstring says."""

from __future__ import annotations

import ast
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


PROTOCOLS = ROOT / "invoker" / "protocols"
BOX = PROTOCOLS / "evergreen" / "action_engine" / "box.py"  # the MessagePack of that wire
WIRE_FILES = sorted({BOX, *PROTOCOLS.rglob("wire.py"), *PROTOCOLS.rglob("wire/*.py")})
BELOW_WIRE = ("_pb", "codecs", "tensors", "errors", "fields", "mediatypes", "message")
"""What a wire may import of `invoker`, besides itself: root modules, codecs, tensors and generated messages."""


def name_of(path: Path) -> str:
    """The name by which a file is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported(path: Path) -> set[str]:
    """The modules of `invoker` that a file imports anywhere, also for types."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
    return {one for one in found if one.startswith("invoker.")}


def test_each_protocol_with_a_client_that_shares_something_has_a_wire() -> None:
    """These five; ADR 59 says why typed and web have none."""
    having = {path.relative_to(PROTOCOLS).parts[0] for path in WIRE_FILES}
    assert having == {path.parent.name for path in PROTOCOLS.glob("*/client")}


LOADED = """
import importlib, os, sys, invoker
for name in sys.argv[1:]:
    if os.fork() == 0:
        importlib.import_module(name)
        print(name, *sorted({"asyncio", "grpc"} & set(sys.modules)), flush=True)
        os._exit(0)
    if os.wait()[1]:
        sys.exit(f"{name} cannot be imported")
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, list[str]]:
    """What a program that imports nothing else has of asyncio and grpc, by the wire that it imports."""
    command = [sys.executable, "-c", LOADED, *map(name_of, WIRE_FILES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("path", WIRE_FILES, ids=name_of)
def test_the_wire_of_a_protocol_is_light(path: Path, loaded: dict[str, list[str]]) -> None:
    """What it says on the wire is shared with the client, and loads neither asyncio nor grpc; nor does `invoker`."""
    assert loaded[name_of(path)] == []


@pytest.mark.parametrize("path", WIRE_FILES, ids=name_of)
def test_a_wire_knows_nothing_of_sessions(path: Path) -> None:
    """It imports root modules, codecs, tensors and messages, and what else is of the same wire."""
    own = (f"{name_of(path).partition('.wire')[0]}.wire.", f"{name_of(BOX)}.")
    foreign = {one for one in imported(path) if not f"{one}.".startswith(own)}
    assert {one for one in foreign if one.split(".")[1] not in BELOW_WIRE} <= {"invoker._pb"}


@pytest.mark.parametrize("path", sorted(PROTOCOLS.glob("*/client/*.py")), ids=name_of)
def test_a_client_knows_of_its_protocol_only_the_wire(path: Path) -> None:
    """So it stays light, and what both sides say stands in one place."""
    own = ".".join(name_of(path).split(".")[:3])
    parts = {one.removeprefix(f"{own}.").split(".")[0] for one in imported(path) if one.startswith(f"{own}.")}
    assert parts <= {"client", "wire"}
