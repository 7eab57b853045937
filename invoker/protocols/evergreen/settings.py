"""`EvergreenServiceSettings`, which an operator sets.

`EvergreenSettings`, the settings that sessions need; `EXTENSIONS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from invoker.protocols.evergreen.actions import ActionServiceSettings
from invoker.settings import parsers as parse
from invoker.settings.setting import setting

EXTENSIONS = ("drop", "ttl", "partial-failures", "cancel", "accept", "discovery")
"""Extensions of the specification; off unless the client names them in the metadata ``evergreen-extensions``
(E-118)."""

METADATA_MODES = ("strict", "identical", "ignore")
"""Whether metadata on a seq other than 0 is an error, is an error unless it equals that of seq 0, or is ignored
(E-036)."""


@dataclass(frozen=True, slots=True)
class EvergreenSettings:
    """Settings and limits of a session; sizes in bytes.

    Attributes:
        metadata: One of `METADATA_MODES`.
        actions: Action name -> name of the function in the catalogue, besides the functions' own names (E-071).
        inputs: Alias of an input -> name of the parameter (E-075).
        targets: Ids of targets that are served here, besides the default one (E-074).
        session_bytes: Bytes of payloads, resolved references and retained outputs that a session may hold.
        nodes: How many nodes a session may hold.
        depth: Nesting of an input; its root is 1.
        leaves: The leaves of one flattened input.
        actions_running: How many actions of one session may run at once; further ones wait.
        actions_waiting: How many actions may wait for a running one to end.
        name_bytes: Longest id or name, in UTF-8.
        fragment_bytes: Largest payload of a fragment that is sent.
        reference_bytes: The most bytes of one resolved reference.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EvergreenServiceSettings(ActionServiceSettings):
    """Settings that only Evergreen has, and those of all actions."""

    targets: tuple[str, ...] = setting(
        (), "INVOKER_TARGETS", parse.names,
        "A target id that Evergreen actions may name; an action may always leave it out.", flag="--target", many=True,
        before="session_bytes",
    )  # fmt: skip
    evergreen_metadata: str = setting(
        "strict", "INVOKER_EVERGREEN_METADATA", parse.one_of(*METADATA_MODES),
        "How metadata on later pieces of an Evergreen node is treated: as an error, as an error unless it equals "
        "that of the first piece, or ignored.", choices=METADATA_MODES,
    )  # fmt: skip
    session_nodes: int = setting(
        100_000, "INVOKER_SESSION_NODES", parse.whole(1), "How many nodes an Evergreen session may hold.", unit="nodes",
        before="sessions",
    )  # fmt: skip
    ref_roots: tuple[str, ...] = setting(
        (), "INVOKER_REF_ROOTS", parse.directories,
        "A directory from which Evergreen clients may have files read, by file: references.",
        flag="--ref-root", many=True, before="allowed_origins",
    )  # fmt: skip
    ref_http: str = setting(
        "off", "INVOKER_REF_HTTP", parse.hosts,
        "From which hosts Evergreen clients may have content fetched, by http: and https: references: off, public "
        "(public addresses only), or HOST,HOST.",
    )  # fmt: skip
