"""`EvergreenService`: attaches Evergreen's sessions to the gRPC door, as the knobs say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from invoker.errors import ConfigError
from invoker.services.service import Service, Surroundings

if TYPE_CHECKING:
    from invoker.author.spec import FunctionSpec
    from invoker.doors.grpc.methods import Method
    from invoker.fetch.fetcher import Fetcher

__all__ = ["EvergreenService"]


class EvergreenService(Service):
    """Evergreen's sessions, and the fetcher that reads their references."""

    name = "evergreen"
    on_grpc = True
    on_loop = True

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._fetcher: Fetcher | None = None

    def grpc_methods(self) -> Sequence[Method]:
        """The method that starts sessions.

        Raises:
            ConfigError: An alias stands for no parameter, or references may lead to what cannot be.
        """
        from invoker.protocols.evergreen.settings import EvergreenSettings
        from invoker.services.evergreen.sessions import evergreen_method

        config = self.around.config
        self._check_inputs()
        settings = EvergreenSettings(
            metadata=config.evergreen_metadata,
            actions=self.around.actions,
            inputs=dict(config.inputs),
            targets=config.targets,
            session_bytes=config.session_bytes,
            nodes=config.session_nodes,
        )
        if config.ref_roots or config.ref_http != "off":
            self._made_fetcher()  # so that what it cannot use is told before a port opens
        return (evergreen_method(self.around.driver, settings, fetch=self.fetch, sessions=config.sessions),)

    async def stop(self, grace_s: float) -> None:  # noqa: ARG002 - a fetch is given up at once
        """Give up what is still being fetched."""
        if self._fetcher is not None:
            await self._fetcher.close()

    def sample(self, spec: FunctionSpec, address: str, *, is_one: bool) -> str:  # noqa: ARG002 - it is named anyway
        """A conversation, for a function that holds one."""
        from invoker.ops.samples import chat_command

        return chat_command(spec, address)

    async def fetch(self, uri: str, most: int, deliver: Callable[[bytes], None]) -> None:
        """Get what a reference of a session refers to; see `invoker.fetch.fetcher`."""
        await self._made_fetcher().fetch(uri, most, deliver)

    def _check_inputs(self) -> None:
        """An alias is for a parameter that some function has."""
        specs = [function.spec for function in self.around.driver.engine.catalog]
        known = {one.name for spec in specs for one in (*spec.inputs, *spec.optional)}
        seen: set[str] = set()
        for alias, name in self.around.config.inputs:
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

            roots = tuple(Path(one) for one in self.around.config.ref_roots)
            self._fetcher = Fetcher(FetchPolicy(roots, self.around.config.ref_http))
        return self._fetcher
