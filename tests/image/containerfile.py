"""Reads deploy/Containerfile: the instructions that it uses, so that its steps can be looked at and run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PATH = Path(__file__).resolve().parents[2] / "deploy" / "Containerfile"


@dataclass
class Stage:
    """One image on the way.

    Attributes:
        base: What it starts from.
        name: What later stages call it; empty for the last one.
        steps: ``(instruction, rest)`` of what changes files or settings, in order.
    """

    base: str
    name: str = ""
    steps: list[tuple[str, str]] = field(default_factory=list)


def stages(text: str) -> list[Stage]:
    """The stages of a Containerfile.

    Raises:
        ValueError: An instruction that this reader does not know.
    """
    args: dict[str, str] = {}
    found: list[Stage] = []
    for word, rest in _instructions(text):
        if word == "ARG" and not found:
            name, _, value = rest.partition("=")
            args[name] = value
        elif word == "FROM":
            match = re.fullmatch(r"(\S+)(?: AS (\S+))?", expand(rest, args))
            if match is None:
                raise ValueError(f"FROM {rest}")
            found.append(Stage(match[1], match[2] or ""))
        elif word in {"COPY", "RUN", "ENV", "WORKDIR", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}:
            found[-1].steps.append((word, rest))
        else:
            raise ValueError(f"{word} {rest}: the reader of Containerfiles in tests/image does not know this")
    return found


def expand(text: str, values: dict[str, str]) -> str:
    """Put values in the place of ``$NAME`` and ``${NAME}``."""
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda match: values[match[1] or match[2]], text)


def words(rest: str) -> list[str]:
    """The arguments of ENTRYPOINT or CMD in their JSON form."""
    found = json.loads(rest)
    assert isinstance(found, list)
    return [str(one) for one in found]


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        yield word, " ".join(rest.split())
