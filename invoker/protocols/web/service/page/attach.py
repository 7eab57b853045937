"""`PageService`: the page at ``/`` for a browser."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from invoker.attach.service import Service
from invoker.settings import parsers as parse
from invoker.settings.knob import knob

if TYPE_CHECKING:
    from invoker.protocols.web.service.page.assets import Assets
    from invoker.settings import Config
    from invoker.transports.http.app import Front

__all__ = ["PageKnobs", "PageService"]

_CHOICES: Final = ("auto", "on", "off")
_ROOT: Final = "/"
_NUMBERS: Final = "/invocations"
_FILES: Final = "/_page/"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageKnobs:
    """Whether there is a page."""

    page: str = knob(
        "auto", "INVOKER_PAGE", parse.one_of(*_CHOICES),
        "Whether a browser gets a page at / to try the functions with, and the live numbers behind it; 'auto' is on if "
        "the HTTP port listens on loopback only.", choices=_CHOICES, heading="browsers", before="allowed_origins",
    )  # fmt: skip


class PageService(Service):
    """The page, its files, and the live numbers of running invocations (H-070)."""

    name = "page"
    on_http = True
    knobs = PageKnobs

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:
        """On the HTTP door only, unless it is switched off."""
        return is_chosen and has_http and config.of(PageKnobs).page != "off"

    def http_front(self, path: str) -> Front | None:
        """Who answers for the files of the page, and for the numbers."""
        if path == _NUMBERS and self.is_on:
            return self._numbers_front
        return self._files if path.startswith(_FILES) and self.is_on else None

    def http_over(self, path: str, below: Front) -> Front:
        """The page, in front of who answers at ``/``."""
        if path != _ROOT or not self.is_on:
            return below
        from invoker.protocols.web.service.page.fronts import PageFront

        return PageFront(self._assets, below)

    @property
    def page(self) -> str:
        """Where it is, if there is one."""
        return _ROOT if self.is_on else ""

    @property
    def is_on(self) -> bool:
        """Whether there is a page; with `auto` that is known once the port is open."""
        if self.around.config.of(PageKnobs).page == "on":
            return True
        host, _, _ = (self.around.http_address() or "").rpartition(":")
        return parse.is_loopback(host.strip("[]"))

    @cached_property
    def _assets(self) -> Assets:
        from invoker.protocols.web.service.page.assets import Assets

        return Assets()

    @cached_property
    def _files(self) -> Front:
        from invoker.protocols.web.service.page.fronts import FilesFront

        return FilesFront(self._assets, _FILES)

    @cached_property
    def _numbers_front(self) -> Front:
        from invoker.protocols.web.service.page.fronts import NumbersFront

        return NumbersFront(self.around.driver, workers=self.around.config.workers)
