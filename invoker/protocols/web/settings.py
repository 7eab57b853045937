"""`PageServiceSettings`: the setting of the page for browsers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from invoker.settings import parsers as parse
from invoker.settings.setting import setting

_CHOICES: Final = ("auto", "on", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageServiceSettings:
    """The setting whether browsers get a page."""

    page: str = setting(
        "auto", "INVOKER_PAGE", parse.one_of(*_CHOICES),
        "Whether a browser gets a page at / to try the functions with, and the live numbers behind it; 'auto' is on if "
        "the HTTP port listens on loopback only.", choices=_CHOICES, heading="browsers", before="allowed_origins",
    )  # fmt: skip
