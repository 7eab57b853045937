"""The table of services: one row for each protocol that can be served.

Everything that concerns all services is gathered here: their settings, the configuration that is read from them, and
which services are served.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import Field, make_dataclass
from functools import cached_property
from typing import Any, Final

from invoker.attach.declared import INTERFACE, EntryFile, Verb, load
from invoker.attach.service import Service
from invoker.codecs.custom import installed
from invoker.errors import ConfigError
from invoker.errors.wording import describe
from invoker.settings import Config
from invoker.settings import parsers as parse
from invoker.settings.setting import Flags, as_given, gathered, setting, settings_of

SERVICES: tuple[str, ...] = (
    "invoker.protocols.riff.service.attach:RiffService",
    "invoker.protocols.evergreen.service.attach:EvergreenService",
    "invoker.protocols.web.service.attach:RiffHttpService",
    "invoker.protocols.graphpipe.service.attach:GraphPipeService",
    "invoker.protocols.evergreen.service.action_engine:ActionEngineService",
    "invoker.protocols.toolbridge.service.attach:ToolBridgeService",
    "invoker.protocols.federated.service.attach:FederatedService",
    "invoker.protocols.typed.service.attach:TypedService",
)
"""The services of protocols. For an HTTP path, later rows are asked first, so the first rows get the paths that no
other service claims."""

OWN: tuple[str, ...] = (
    "invoker.server.endpoints.health:HealthService",
    "invoker.server.endpoints.pages:PagesService",
    "invoker.protocols.web.service.functions:FunctionsService",
    "invoker.protocols.web.service.page.attach:PageService",
)
"""The services of the process itself, on the transports that its protocols open."""

HTTP: Final = "http"
"""The name of the service without which there is no HTTP transport."""

GROUP: Final = "invoker.protocols"
"""The group of the entry points by which other distributions add rows."""


class Table:
    """The table of all services. Their modules are loaded when services or settings are first listed.

    Args:
        rows: Services, or references to them as "module:name".
        group: The group of the entry points by which other distributions add rows; empty: no other distribution may add
            any.
    """

    def __init__(self, rows: Sequence[str | type[Service]] = SERVICES, *, group: str = "") -> None:
        self._given = tuple(rows)
        self._group = group

    @property
    def rows(self) -> tuple[type[Service], ...]:
        """The classes of all services that could be loaded."""
        return self._loaded[0]

    @property
    def refused(self) -> tuple[str, ...]:
        """A sentence for each service of another distribution that is left out."""
        return self._loaded[1]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the services, as in INVOKER_PROTOCOLS."""
        return tuple(one.name for one in self.rows)

    @property
    def verbs(self) -> tuple[Verb, ...]:
        """The commands that the services add to ``python -m invoker``."""
        return tuple(verb for one in self.rows for verb in one.verbs)

    def entry_file(self, entrypoint: str) -> EntryFile | None:
        """The kind of file that an entrypoint names; None: no service takes such a file."""
        files = (one.entry_file for one in self.rows if one.entry_file is not None)
        return next((one for one in files if entrypoint.endswith(one.suffix)), None)

    @property
    def settings(self) -> tuple[Field[Any], ...]:
        """The settings of the process and of every service, in the order of listing."""
        return gathered((Config, *self._kinds))

    def read(self, env: Mapping[str, str] = os.environ, flags: Flags | None = None) -> Config:
        """Read the settings from the environment and the command line.

        Args:
            env: Variables; empty or blank ones count as unset.
            flags: The flags by field name; they override the environment.

        Raises:
            ConfigError: A setting has an invalid value, or values contradict each other (R-004).
        """
        try:
            config = Config.read(env, flags or {}, self._kinds)
            self.served(config)
        except ConfigError as error:
            raise ConfigError(as_given(error.detail, self.settings, flags or {})) from None
        return config

    def configured(self, **values: Any) -> Config:
        """Make the settings from some values by name; the others have their defaults.

        Raises:
            ConfigError: The settings contradict each other.
        """
        own = {one.name for one in settings_of(Config)}
        kinds = {kind: {one.name for one in settings_of(kind)} for kind in self._kinds}
        unknown = values.keys() - own.union(*kinds.values())
        assert not unknown, f"there are no settings {unknown}"
        services = tuple(
            kind(**{name: values[name] for name in values.keys() & known}) for kind, known in kinds.items()
        )
        config = Config(services=services, **{name: values[name] for name in values.keys() & own})
        self.served(config)
        return config

    def has_http(self, config: Config) -> bool:
        """Whether there is an HTTP transport: a process that serves anything on it serves the HTTP API."""
        return config.http and HTTP in self._chosen(config)

    def served(self, config: Config) -> tuple[type[Service], ...]:
        """The services that the settings choose, in the order of the table.

        Raises:
            ConfigError: The settings contradict each other.
        """
        chosen, has_http = self._chosen(config), self.has_http(config)
        out = self.left_out(config)
        if out and self.is_asked(config):
            raise ConfigError(next(iter(out.values())))
        found = tuple(
            one
            for one in self.rows
            if one.is_served(config, is_chosen=one.name in chosen and one.name not in out, has_http=has_http)
        )
        if found and self.is_asked(config):
            for one in self.rows:
                if one.name in chosen and one.needs and one not in found:
                    raise ConfigError(f"INVOKER_PROTOCOLS is {','.join(chosen)}, and {one.name} needs {one.needs}")
        if config.http_unix and not has_http:
            raise ConfigError(
                "INVOKER_HTTP_UNIX is set, but http is not served; see INVOKER_PROTOCOLS and INVOKER_HTTP"
            )
        if not found:
            given = f"INVOKER_PROTOCOLS is {','.join(chosen)}"
            if HTTP in chosen:
                raise ConfigError(f"{given} and INVOKER_HTTP is off, so nothing would be served")
            needs = next(one.needs for one in self.rows if one.name in chosen)
            raise ConfigError(f"{given}, which needs {needs}; without it nothing would be served")
        if config.port and config.port == config.grpc_port and has_http and any(one.on_grpc for one in found):
            raise ConfigError(f"PORT and GRPC_PORT are both {config.port}; HTTP and gRPC need a port each")
        return found

    def is_asked(self, config: Config) -> bool:
        """Whether INVOKER_PROTOCOLS is set, instead of the default."""
        return set(self._chosen(config)) != set(self._default)

    def left_out(self, config: Config) -> dict[str, str]:
        """The chosen services that must not be served with these settings, by name, each with the reason."""
        chosen = self._chosen(config)
        return {one.name: why for one in self.rows if one.name in chosen and (why := one.unfit(config))}

    @property
    def _default(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.rows if one.is_default)

    def own(self, config: Config) -> tuple[type[Service], ...]:
        """The services of the process itself, such as health and metrics, that are served."""
        has_http = self.has_http(config)
        return tuple(one for one in self._own if one.is_served(config, is_chosen=True, has_http=has_http))

    def _chosen(self, config: Config) -> tuple[str, ...]:
        chosen: tuple[str, ...] = config.of(self._choice).protocols
        return chosen

    @property
    def _kinds(self) -> tuple[type, ...]:
        """The dataclasses of the services' settings."""
        return (self._choice, *(one.settings for one in (*self.rows, *self._own) if one.settings is not None))

    @cached_property
    def _own(self) -> tuple[type[Service], ...]:
        return tuple(load(one) for one in OWN)

    @cached_property
    def _loaded(self) -> tuple[tuple[type[Service], ...], tuple[str, ...]]:
        """The rows, and the reasons why services of other distributions are left out."""
        rows = [load(one) if isinstance(one, str) else one for one in self._given]
        refused = []
        for entry in installed(self._group) if self._group else ():
            try:
                rows.append(_fitting(entry.load(), (*rows, *self._own)))
            except Exception as error:  # noqa: BLE001 - code of other distributions may raise anything
                why = error.detail if isinstance(error, ConfigError) else describe(error)
                refused.append(f"the protocol '{entry.name}' of another distribution is left out: {why}")
        return tuple(rows), tuple(refused)

    @cached_property
    def _choice(self) -> Any:
        """A dataclass whose only setting says which protocols are served."""
        on_grpc = " and ".join(one.name for one in self.rows if one.on_grpc)
        *others, last = (one.name for one in self.rows if not one.on_grpc)
        protocols = setting(
            self._default,
            "INVOKER_PROTOCOLS",
            parse.some_of(*self.names),
            f"Which protocols are served: {on_grpc} on the gRPC port; {', '.join(others)} and {last} on the HTTP port.",
            before="http",
        )
        return make_dataclass("Choice", [("protocols", tuple[str, ...], protocols)], frozen=True, slots=True)


def _fitting(found: Any, others: Sequence[type[Service]]) -> type[Service]:
    """A service of another distribution, if it can be served beside the others.

    Raises:
        ConfigError: The service cannot be served.
    """
    if not (isinstance(found, type) and issubclass(found, Service)):
        raise ConfigError(f"{found!r} is not a subclass of invoker.attach.service.Service")
    if found.interface != INTERFACE:
        raise ConfigError(
            f"it was written for version {found.interface} of the interface of services; this invoker has "
            f"version {INTERFACE}"
        )
    if found.name in (one.name for one in others):
        raise ConfigError(f"there is a protocol named '{found.name}' already")
    taken = {verb.name for one in others for verb in one.verbs}
    if again := [verb.name for verb in found.verbs if verb.name in taken]:
        raise ConfigError(f"there is a command '{again[0]}' already")
    gathered((Config, *(one.settings for one in (*others, found) if one.settings is not None)))
    return found


TABLE = Table(group=GROUP)
