"""`PageService`: serves the page at ``/`` for browsers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

from invoker.attach.service import Service
from invoker.protocols.web.settings import PageServiceSettings
from invoker.settings import parsers as parse

if TYPE_CHECKING:
    from invoker.protocols.web.service.page.assets import Assets
    from invoker.settings import Config
    from invoker.transports.http.app import Handler

_ROOT: Final = "/"
_NUMBERS: Final = "/invocations"
_FILES: Final = "/_page/"


class PageService(Service):
    """Serves the page, its files, and the live numbers of running invocations (H-070)."""

    name = "page"
    on_http = True
    settings = PageServiceSettings

    @classmethod
    def is_served(cls, config: Config, *, is_chosen: bool, has_http: bool) -> bool:
        """Whether the service is served: only over HTTP, unless the page is switched off."""
        return is_chosen and has_http and config.of(PageServiceSettings).page != "off"

    def http_handler(self, path: str) -> Handler | None:
        """The handler of the page's files, or the handler of the numbers."""
        if path == _NUMBERS and self.is_on:
            return self._numbers_handler
        return self._files if path.startswith(_FILES) and self.is_on else None

    def http_over(self, path: str, below: Handler) -> Handler:
        """The handler of the page, in front of the handler of ``/``."""
        if path != _ROOT or not self.is_on:
            return below
        from invoker.protocols.web.service.page.handlers import PageHandler

        return PageHandler(self._assets, below)

    @property
    def page(self) -> str:
        """The path of the page, if there is one."""
        return _ROOT if self.is_on else ""

    @property
    def is_on(self) -> bool:
        """Whether there is a page; if the setting is `auto`, the address of the open port decides."""
        if self.around.config.of(PageServiceSettings).page == "on":
            return True
        host, _, _ = (self.around.http_address() or "").rpartition(":")
        return parse.is_loopback(host.strip("[]"))

    @cached_property
    def _assets(self) -> Assets:
        from invoker.protocols.web.service.page.assets import Assets

        return Assets()

    @cached_property
    def _files(self) -> Handler:
        from invoker.protocols.web.service.page.handlers import FilesHandler

        return FilesHandler(self._assets, _FILES)

    @cached_property
    def _numbers_handler(self) -> Handler:
        from invoker.protocols.web.service.page.handlers import NumbersHandler

        return NumbersHandler(self.around.driver, workers=self.around.config.workers)
