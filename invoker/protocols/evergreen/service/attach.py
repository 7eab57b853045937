"""`EvergreenService`: attaches Evergreen's sessions to the gRPC transport."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from invoker.attach.declared import Verb
from invoker.attach.service import Service, Surroundings
from invoker.errors import ConfigError
from invoker.errors.wording import suggestion
from invoker.protocols.evergreen.actions import ActionServiceSettings
from invoker.protocols.evergreen.settings import EvergreenServiceSettings

if TYPE_CHECKING:
    from invoker.author.prepare import Prepared
    from invoker.author.spec import FunctionSpec
    from invoker.fetch.fetcher import Fetcher
    from invoker.settings import Config
    from invoker.transports.grpc.methods import Method


class EvergreenService(Service):
    """Serves Evergreen sessions, and owns the fetcher that resolves their references."""

    name = "evergreen"
    on_grpc = True
    on_loop = True
    settings = EvergreenServiceSettings
    inspection = "invoker.protocols.evergreen.verbs.inspection"
    verbs = (
        Verb(
            "chat", "HOST:PORT", "hold a conversation with an action of any Evergreen server",
            "Hold a conversation in the terminal with an action of any Evergreen server.",
            "invoker.protocols.evergreen.verbs.chat",
        ),
    )  # fmt: skip

    def __init__(self, around: Surroundings) -> None:
        super().__init__(around)
        self._settings = around.config.of(EvergreenServiceSettings)
        self._fetcher: Fetcher | None = None

    @classmethod
    def add_functions(
        cls, config: Config, found: tuple[Prepared, ...]
    ) -> tuple[tuple[Prepared, ...], Mapping[str, str]]:
        """Add the functions that the settings of Evergreen or action-engine name for actions (E-071)."""
        from invoker.author.prepare import with_actions

        return with_actions(
            found,
            config.of(ActionServiceSettings).actions,
            allow_pickle=config.allow_pickle,
            hook_timeout_s=config.hook_timeout_s,
        )

    def grpc_methods(self) -> Sequence[Method]:
        """The method that starts sessions.

        Raises:
            ConfigError: No function has a parameter for an alias, or the policy of references is invalid.
        """
        from invoker.protocols.evergreen.service.sessions import evergreen_method
        from invoker.protocols.evergreen.settings import EvergreenSettings

        known = self._settings
        self._check_inputs()
        settings = EvergreenSettings(
            metadata=known.evergreen_metadata,
            actions=self.around.actions,
            inputs=dict(known.inputs),
            targets=known.targets,
            session_bytes=known.session_bytes,
            nodes=known.session_nodes,
        )
        if known.ref_roots or known.ref_http != "off":
            self._made_fetcher()  # makes the fetcher now, so that a wrong setting is found before a port opens
        return (evergreen_method(self.around.driver, settings, fetch=self.fetch, sessions=known.sessions),)

    async def stop(self, grace_s: float) -> None:  # noqa: ARG002 - fetches are cancelled at once
        """Stop the running fetches."""
        if self._fetcher is not None:
            await self._fetcher.close()

    def sample(self, spec: FunctionSpec, address: str, *, is_one: bool) -> str:  # noqa: ARG002 - it is named anyway
        """A command that starts a conversation, if the function can hold one."""
        from invoker.telemetry.samples import chat_command

        return chat_command(spec, address)

    async def fetch(self, uri: str, most: int, deliver: Callable[[bytes], None]) -> None:
        """Fetch the content of a reference; see `invoker.fetch.fetcher`."""
        await self._made_fetcher().fetch(uri, most, deliver)

    def _check_inputs(self) -> None:
        """Refuse an alias for a parameter that no function has."""
        specs = [function.spec for function in self.around.driver.engine.catalog]
        known = {one.name for spec in specs for one in (*spec.inputs, *spec.optional)}
        seen: set[str] = set()
        for alias, name in self._settings.inputs:
            if name not in known and not any(spec.open_names for spec in specs):
                hint = suggestion(name, sorted(known))
                raise ConfigError(f"--input {alias}={name}: no function has a parameter {name!r}; {hint}")
            if alias in seen:
                raise ConfigError(f"--input {alias}={name}: {alias!r} is already an alias of another parameter")
            seen.add(alias)

    def _made_fetcher(self) -> Fetcher:
        if self._fetcher is None:
            # imported late, since most processes never fetch a reference
            from invoker.fetch.fetcher import Fetcher, FetchPolicy

            roots = tuple(Path(one) for one in self._settings.ref_roots)
            self._fetcher = Fetcher(FetchPolicy(roots, self._settings.ref_http))
        return self._fetcher
