"""Short constructors for the actions that most scenarios send."""

from __future__ import annotations

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.evergreen.frames import TEXT, A, F

HI = F("p", m=TEXT, t="hi")
"""A leaf whose text in upper case is ``HI``."""


def upper(node: str = "p", out: str = "r") -> pb.Action:
    """An action that returns a text in upper case."""
    return A("upper", {"text": node}, {"out": out})


def items(node: str = "p", out: str = "r") -> pb.Action:
    """An action that returns all leaves of a node in one object."""
    return A("items", {"values": node}, {"out": out})


def parts(node: str = "p", out: str = "r") -> pb.Action:
    """An action that returns all leaves of a node, with types and headers, in one object."""
    return A("parts", {"leaves": node}, {"out": out})


def replay(node: str = "p", out: str = "r") -> pb.Action:
    """An action that yields each leaf of a node as it comes."""
    return A("replay", {"values": node}, {"out": out})
