"""`PublicServiceSettings`.

Protocols that other machines should reach only over TLS have this setting in common.
"""

from __future__ import annotations

from dataclasses import dataclass

from invoker.settings import parsers as parse
from invoker.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicServiceSettings:
    """Settings by which the operator allows insecure choices; each protocol may have more."""

    insecure_public: bool = setting(
        False, "INVOKER_INSECURE_PUBLIC", parse.switch,
        "Whether the tool bridge is served without TLS, and federated rounds without TLS or an API key, on an address "
        "that other machines can reach.", heading="what other machines can reach", before="allowed_origins",
    )  # fmt: skip
