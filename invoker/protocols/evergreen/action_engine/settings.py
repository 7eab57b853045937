"""`ActionEngineSettings`: the names of actions and inputs, and the limits of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ActionEngineSettings:
    """The settings of all sessions; sizes are in bytes.

    Attributes:
        actions: Further names of actions, each with the name of a function in the catalogue.
        inputs: Aliases of inputs, each with the name of a parameter.
        session_bytes: How many bytes that no function has taken yet a session may hold; more end the session.
        high_bytes: When this many bytes wait for slow functions, reading from the peer stops.
        nodes: How many nodes a session may have at once.
        actions_running: How many actions of one session may run at once; further ones are refused.
        name_bytes: The longest id or name, in bytes of UTF-8.
        item_bytes: The largest item of an output; clients of action-engine close the connection at a message above 16
            MiB.
        window: How many messages an input is fed ahead of its function.
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
