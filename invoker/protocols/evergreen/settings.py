"""`EvergreenSettings`: what an operator may set about sessions, and `EXTENSIONS`, which a client may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["EXTENSIONS", "METADATA_MODES", "EvergreenSettings"]

EXTENSIONS = ("drop", "ttl", "partial-failures", "cancel", "accept", "discovery")
"""Beyond the specification; off unless the client names them in the metadata ``evergreen-extensions`` (E-118)."""

METADATA_MODES = ("strict", "identical", "ignore")
"""Metadata on a seq other than 0 is an error; is one unless it equals that of seq 0; is passed over (E-036)."""


@dataclass(frozen=True, slots=True)
class EvergreenSettings:
    """Settings and limits of a session; sizes in bytes.

    Attributes:
        metadata: One of `METADATA_MODES`.
        actions: Action name -> name of the function in the catalogue, besides the functions' own names (E-071).
        inputs: Alias of an input -> name of the parameter (E-075).
        targets: Ids of targets that are served here, besides the default one (E-074).
        session_bytes: Payloads, resolved references and retained outputs that a session may hold.
        nodes: That a session may hold.
        depth: Nesting of an input; its root is 1.
        leaves: Of one flattened input.
        actions_running: At once in one session; more wait.
        actions_waiting: For one of these to end.
        name_bytes: Longest id or name, in UTF-8.
        fragment_bytes: Largest payload of a fragment that is sent.
        reference_bytes: Of one resolved reference.
        window: Messages that an input is fed ahead of its function.
    """

    metadata: str = "strict"
    actions: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    session_bytes: int = 256 * 1024 * 1024
    nodes: int = 100_000
    depth: int = 64
    leaves: int = 1_000_000
    actions_running: int = 64
    actions_waiting: int = 1024
    name_bytes: int = 1024
    fragment_bytes: int = 1024 * 1024
    reference_bytes: int = 32 * 1024 * 1024
    window: int = 64
