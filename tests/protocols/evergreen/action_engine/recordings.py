"""The recorded bytes of tests/data/action_engine."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "data/action_engine"

CONVERSATIONS = sorted(path.stem for path in DATA.glob("*.txt") if path.stem != "layouts")

LAYOUTS = {
    name: bytes.fromhex(packed)
    for name, _, packed in (line.partition(" ") for line in (DATA / "layouts.txt").read_text().splitlines())
}


def conversation(name: str) -> list[tuple[str, bytes]]:
    """Who says what: pairs of ``>`` (the client) or ``<`` (the server) and a message; closing frames are left out."""
    lines = (line.split() for line in (DATA / f"{name}.txt").read_text().splitlines())
    return [(who, bytes.fromhex(what[0])) for who, *what in lines if what[0] != "close"]


def messages(name: str, who: str) -> list[bytes]:
    """What one side says."""
    return [message for speaker, message in conversation(name) if speaker == who]
