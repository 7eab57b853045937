"""`ActionServiceSettings`: the settings that Evergreen and action-engine share."""

from __future__ import annotations

from dataclasses import dataclass

from invoker.settings import parsers as parse
from invoker.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionServiceSettings:
    """Names and limits that are the same for both protocols."""

    actions: tuple[tuple[str, str], ...] = setting(
        (), "INVOKER_ACTIONS", parse.pairs("NAME=module:function"),
        "A further name by which Evergreen clients find a function, as NAME=module:function; the function is "
        "loaded if it is not served yet.", flag="--action", many=True, heading="Evergreen", before="allowed_origins",
    )  # fmt: skip
    inputs: tuple[tuple[str, str], ...] = setting(
        (), "INVOKER_INPUTS", parse.pairs("ALIAS=parameter"),
        "A further name by which Evergreen clients may give a parameter, as ALIAS=parameter.", flag="--input",
        many=True,
    )  # fmt: skip
    session_bytes: int = setting(
        256 * 1024 * 1024, "INVOKER_SESSION_BYTES", parse.whole(1),
        "How much an Evergreen session may hold: what was sent to it, what it fetched, and what its actions gave.",
        unit="bytes",
    )  # fmt: skip
    sessions: int = setting(
        1000, "INVOKER_SESSIONS", parse.whole(1),
        "How many Evergreen sessions a process may have at once; further ones are refused.", unit="sessions",
    )  # fmt: skip
