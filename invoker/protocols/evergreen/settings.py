"""`EvergreenServiceSettings`: the settings of an operator.

`EvergreenSettings`: the settings that sessions need; and `EXTENSIONS`, the supported extensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from invoker.protocols.evergreen.actions import ActionServiceSettings
from invoker.settings import parsers as parse
from invoker.settings.setting import setting

EXTENSIONS = ("drop", "ttl", "partial-failures", "cancel", "accept", "discovery")
"""The supported extensions of the specification, which a client turns on by the metadata ``evergreen-extensions``
(E-118)."""

METADATA_MODES = ("strict", "identical", "ignore")
"""How metadata at a seq other than 0 are treated: as an error, as an error unless they equal those of seq 0, or ignored
(E-036)."""


@dataclass(frozen=True, slots=True)
class EvergreenSettings:
    """The settings and limits of a session; sizes are in bytes.

    Attributes:
        metadata: One of `METADATA_MODES`.
        actions: Further names of actions, each with the name of a function in the catalogue (E-071).
        inputs: Aliases of inputs, each with the name of a parameter (E-075).
        targets: The ids of targets that are served, in addition to the default one (E-074).
        session_bytes: How many bytes of payloads, resolved references and retained outputs a session may hold.
        nodes: How many nodes a session may hold.
        depth: How many levels an input may have; its root is level 1.
        leaves: How many leaves one input may have after flattening.
        actions_running: How many actions of one session may run at once; further ones wait.
        actions_waiting: How many actions may wait for a running one to end.
        name_bytes: The longest id or name, in bytes of UTF-8.
        fragment_bytes: The largest payload of a fragment that is sent.
        reference_bytes: The largest content of one reference.
        window: How many messages an input is fed ahead of its function.
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
    """The settings of Evergreen: the shared ones, and those that only Evergreen has."""

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
