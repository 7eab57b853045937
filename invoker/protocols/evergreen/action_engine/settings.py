"""`ActionEngineSettings`: names, and limits of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ActionEngineSettings:
    """The settings of sessions; sizes in bytes.

    Attributes:
        actions: Action name -> name of the function in the catalogue, besides the functions' own names.
        inputs: Alias of an input -> name of the parameter.
        session_bytes: Bytes that a session may hold that no function has taken yet; one more byte ends the session.
        high_bytes: When this many bytes are held for functions that are behind, nothing more is read from the peer.
        nodes: How many nodes a session may know at once.
        actions_running: How many actions of one session may run at once; one more is refused.
        name_bytes: Longest id or name, in UTF-8.
        item_bytes: The most bytes of one item of an output; clients of action-engine close a connection that brings a
            message above 16 MiB.
        window: Messages that an input is fed ahead of its function.
    """

    actions: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    session_bytes: int = 256 * 1024 * 1024
    high_bytes: int = 4 * 1024 * 1024
    nodes: int = 10_000
    actions_running: int = 64
    name_bytes: int = 1024
    item_bytes: int = 16 * 1024 * 1024 - 64 * 1024
    window: int = 16
