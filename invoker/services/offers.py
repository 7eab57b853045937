"""`Offers`: the methods of the gRPC door, as the knobs say; a protocol's modules are loaded only if it is served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from invoker.config import Config
from invoker.drive.driver import Driver
from invoker.errors import ConfigError

if TYPE_CHECKING:
    from invoker.doors.grpc.methods import Method
    from invoker.fetch.fetcher import Fetcher

__all__ = ["Offers"]


class Offers:
    """What is served by the gRPC door, and what that needs. Whoever makes it closes it.

    Args:
        config: Every knob.
        driver: Runs the conversations.
        actions: Names of functions by those of Evergreen actions, besides the functions' own.
    """

    def __init__(self, config: Config, driver: Driver, actions: Mapping[str, str]) -> None:
        self._config = config
        self._driver = driver
        self._actions = actions
        self._fetcher: Fetcher | None = None

    def methods(self) -> tuple[Method, ...]:
        """The table for the door.

        Raises:
            ConfigError: References may lead to what cannot be.
        """
        methods: list[Method] = []
        if self._config.serves("riff"):
            from invoker.doors.grpc.methods import riff_method

            methods.append(riff_method())
        if self._config.serves("evergreen"):
            methods.append(self._evergreen())
        return tuple(methods)

    async def close(self) -> None:
        """Give up what is still being fetched."""
        if self._fetcher is not None:
            await self._fetcher.close()

    async def fetch(self, uri: str, most: int, deliver: Callable[[bytes], None]) -> None:
        """Get what a reference of a session refers to; see `invoker.fetch.fetcher`."""
        await self._made_fetcher().fetch(uri, most, deliver)

    def _evergreen(self) -> Method:
        from invoker.protocols.evergreen.settings import EvergreenSettings
        from invoker.services.evergreen import evergreen_method

        config = self._config
        self._check_inputs()
        settings = EvergreenSettings(
            metadata=config.evergreen_metadata,
            actions=self._actions,
            inputs=dict(config.inputs),
            targets=config.targets,
            session_bytes=config.session_bytes,
            nodes=config.session_nodes,
        )
        if config.ref_roots or config.ref_http != "off":
            self._made_fetcher()  # so that what it cannot use is told before a port opens
        return evergreen_method(self._driver, settings, fetch=self.fetch, sessions=config.sessions)

    def _check_inputs(self) -> None:
        """An alias is for a parameter that some function has."""
        specs = [function.spec for function in self._driver.engine.catalog]
        known = {one.name for spec in specs for one in (*spec.inputs, *spec.optional)}
        seen: set[str] = set()
        for alias, name in self._config.inputs:
            if name not in known and not any(spec.open_names for spec in specs):
                near = get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(known)) or 'none'}"
                raise ConfigError(f"--input {alias}={name}: no function has a parameter {name!r}; {hint}")
            if alias in seen:
                raise ConfigError(f"--input {alias}={name}: {alias!r} stands for another parameter already")
            seen.add(alias)

    def _made_fetcher(self) -> Fetcher:
        if self._fetcher is None:
            from invoker.fetch.fetcher import Fetcher, FetchPolicy  # most processes refuse references unread

            roots = tuple(Path(one) for one in self._config.ref_roots)
            self._fetcher = Fetcher(FetchPolicy(roots, self._config.ref_http))
        return self._fetcher
