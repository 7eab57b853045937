"""`FederatedServiceSettings`: the settings of federated rounds."""

from __future__ import annotations

from dataclasses import dataclass

from invoker.attach.public import PublicServiceSettings
from invoker.settings import parsers as parse
from invoker.settings.setting import setting

_LEVELS = ("none", "default", "best", "fast")
"""The names of the compression levels, by their numbers on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedServiceSettings(PublicServiceSettings):
    """The settings of federated rounds."""

    federated: str = setting(
        "", "INVOKER_FEDERATED", str.strip,
        "A file such as rounds.toml, which names populations of devices, their tasks and how their rounds go; it may "
        "also be given in place of the entrypoint.", heading="federated rounds", before="allowed_origins",
    )  # fmt: skip
    federated_url: str = setting(
        "", "INVOKER_FEDERATED_URL", parse.base_url,
        "Where devices reach the HTTP port, to download plans and checkpoints; unset means http://localhost and the "
        "port.",
    )  # fmt: skip
    federated_sessions: int = setting(
        10_000, "INVOKER_FEDERATED_SESSIONS", parse.whole(1),
        "How many sessions of devices a process may have at once; further ones are refused.", unit="sessions",
    )  # fmt: skip
    federated_peer_sessions: int = setting(
        32, "INVOKER_FEDERATED_PEER_SESSIONS", parse.whole(1),
        "How many sessions of devices may come from one address at once; further ones are refused.", unit="sessions",
    )  # fmt: skip
    federated_compression: str = setting(
        "none", "INVOKER_FEDERATED_COMPRESSION", parse.one_of(*_LEVELS),
        "How messages in chunks are compressed, up and down, where the device can. Weights in floating point hardly "
        "become smaller, and masked inputs do not at all.", choices=_LEVELS,
    )  # fmt: skip

    @property
    def level(self) -> int:
        """The number of the compression level on the wire."""
        return _LEVELS.index(self.federated_compression)
