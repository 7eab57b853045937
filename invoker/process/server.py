"""The composition root: functions, engine, driver, doors and observers become one serving process.

Order of a start: start hooks, then bind, then answer, then the ready line (R-014). Order of a stop: health says no,
no new invocations, running ones end within the drain, doors close, bodies leave, stop hooks run (R-018, R-024,
R-025).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from invoker.body.lift import Function
from invoker.codecs import Registry
from invoker.config import Config
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.policy import ErrorPolicy
from invoker.core.streams import Limits
from invoker.doors.grpc.settings import GrpcSettings
from invoker.doors.sockets import open_files, spelled
from invoker.doors.tls import TlsFiles
from invoker.drive.driver import Driver, DriverSettings
from invoker.drive.isolated.pool import ChildrenSettings
from invoker.drive.nested.scope import CatalogScope
from invoker.errors import ConfigError, StartupError, Status
from invoker.ops import prints
from invoker.ops.board import Numbers
from invoker.ops.endings import Endings
from invoker.ops.memory import Trimmer
from invoker.ops.metrics import numbers_of
from invoker.ops.ready import ready_block
from invoker.ops.samples import near
from invoker.ops.watchdog import Watchdog
from invoker.process.stopping import Guard, dump, listed
from invoker.services.service import Service, Surroundings, spoken_at
from invoker.services.table import TABLE, Table
from invoker.stores import store_of

if TYPE_CHECKING:
    from invoker.doors.grpc.aio import AioDoor
    from invoker.doors.grpc.fast import FastDoor
    from invoker.doors.grpc.methods import Method
    from invoker.doors.http.app import Front
    from invoker.doors.http.door import HttpDoor

__all__ = ["Server"]

log = logging.getLogger(__name__)

_GC_THRESHOLDS = (20_000, 20, 20)
"""New objects between two collections: an invocation makes some hundred, and leaves no cycles behind."""
_STOP_GRACE_S = 1.0

_BAD_INPUT = {"unknown": Status.UNKNOWN, "invalid-argument": Status.INVALID_ARGUMENT}
"""Of a payload that cannot be decoded (R-069)."""

_CLOSE_LIMIT_S = 5.0
"""What the doors get to close, all in all, before the stop is taken for stuck."""


class Server:
    """Serves functions through the gRPC and the HTTP door.

    Args:
        config: Every knob.
        catalog: What to serve.
        registry: Codecs.
        actions: Names of functions by those of actions, besides the functions' own.
        table: What services there are.

    Attributes:
        grpc_address: ``host:port`` once started; empty when nothing is served on it.
        http_address: ``host:port`` once started; empty without the HTTP door.
        share_ports: Whether other processes may bind the same ports.
        guard: Limits the time of the process's end.
        is_lame: Whether it says that it is not ready, though it takes calls.
        numbers: What `/metrics` tells.
    """

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        registry: Registry,
        *,
        actions: Mapping[str, str] | None = None,
        table: Table = TABLE,
    ) -> None:
        self.config = config
        self.grpc_address = ""
        self.http_address = ""
        limits = Limits(config.high_frames, config.high_bytes, config.hard_frames, config.hard_bytes)
        self.engine = Engine(
            catalog,
            registry,
            limits=limits,
            max_invocations=config.max_invocations,
            check_outputs=config.check_outputs,
            memory_bytes=config.memory_bytes,
            policy=ErrorPolicy(config.error_detail, _BAD_INPUT[config.bad_input]),
            new_lock=threading.Lock,  # direct conversations open and close invocations in their own threads
        )
        self.engine.limit_calls(config.calls_per_minute)
        self._endings = Endings()
        self.engine.on_close += [self._endings, prints.ended]
        children = ChildrenSettings(config.children, config.warm_children, config.for_children())
        settings = DriverSettings(
            config.threads, config.grace_s, config.lingering_s, config.debug, config.call_depth, children
        )
        self.driver = Driver(self.engine, settings, store=store_of(config.store))
        self.engine.scope = CatalogScope(self.driver)
        self._trimmer = Trimmer(self.engine.memory, self.driver.threads)
        self.share_ports = False
        self.numbers: Callable[[], Numbers] = self._count
        self._functions: Sequence[Function] = tuple(catalog)
        self._hooks_limit_s = sum(function.hooks.stop_limit_s for function in self._functions)
        self.guard = Guard(lambda: asyncio.run(self._stop_functions()), self._hooks_limit_s)
        self.is_lame = False
        self._fast: bool | None = None
        self._grpc: AioDoor | FastDoor | None = None
        self._actions = dict(actions or {})
        self._services: tuple[Service, ...] = ()
        self._fronts: list[Callable[[str], Front | None]] = []
        self._table, self._kinds = table, table.served(config)
        self._http: HttpDoor | None = None
        self._watchdog: Watchdog | None = None

    @property
    def lends(self) -> bool:
        """Whether the fast door will serve async functions or sessions; the process then needs a `LendingLoop`.

        Sessions go 1.7 times as fast on it, and HTTP requests a tenth slower.
        """
        on_loop = not self.driver.is_direct or any(one.on_loop for one in self._kinds)
        return on_loop and self._has_grpc and self._is_fast()

    @property
    def _has_grpc(self) -> bool:
        return any(one.on_grpc for one in self._kinds)

    async def start(self) -> None:
        """Run the start hooks, bind both doors, and answer.

        The HTTP door and the services' own sockets open before hooks that take time: they say that this process is not
        ready, answer what needs no function, and refuse calls. The gRPC door opens after them (R-014, ADR 15), as all
        doors of workers do, since another worker on the same ports may be ready.

        Raises:
            HookError: A start hook failed; the stop hooks have run.
            StartupError: A port cannot be bound, a certificate not be read, or the store not be opened.
        """
        open_files()
        for name, why in self._table.left_out(self.config).items():
            log.info("%s is not served: %s", name, why)
        self.driver.store.start()
        tls = TlsFiles.of(self.config.tls_cert, self.config.tls_key, self.config.tls_client_ca)
        around = Surroundings(
            *(self.config, self.driver, self._actions, self.is_ready, self.numbers, self._endings.note, tls),
            *(self.share_ports, self._table.is_asked(self.config)),
            http_address=lambda: self.http_address if self._table.has_http(self.config) else None,
            files=lambda: tuple(file for one in self._services for file in one.files()),
            spoken=lambda: spoken_at(self._services[: len(self._kinds)], self.grpc_address, self.http_address),
        )
        self._services = tuple(kind(around) for kind in (*self._kinds, *self._table.own(self.config)))
        self._fronts = [one.http_front for one in reversed(self._services) if one.on_http]
        self.engine.is_loading = not self.share_ports and any(one.hooks.takes_time for one in self._functions)
        if is_early := self.engine.is_loading:
            await self._open_others(tls)
            if served := self._served():
                log.info("loading: calls on %s are refused until the functions are ready", served)
        for function in self._functions:
            await function.start()
        await self.driver.children.start()
        self.engine.is_loading = False
        if self._has_grpc:
            await self._open_grpc(tls)
        if not is_early:
            await self._open_others(tls)
        if self.config.blocked_s and not self.driver.is_direct:
            self._watchdog = Watchdog(self.config.blocked_s)
            self._watchdog.start()
        self._trimmer.start()
        gc.collect()
        gc.freeze()  # objects of the start live as long as the process, so the collector skips them
        gc.set_threshold(*_GC_THRESHOLDS)

    @property
    def end_limit_s(self) -> float:
        """How long the end of the process may take, from the first signal on."""
        config = self.config
        return config.lame_duck_s + config.drain_s + config.grace_s + self._hooks_limit_s + _CLOSE_LIMIT_S

    async def refresh_health(self) -> None:
        """Tell the watchers of grpc.health.v1 at once what has changed."""
        for one in self._services:
            await one.refresh()

    async def stop(self, *, drain_s: float) -> bool:
        """Drain, close the doors, run the stop hooks; True when nothing was cut and no hook failed."""
        clean = True
        self._trimmer.stop()
        self.engine.is_draining = True
        await self.refresh_health()
        try:
            if not await self.driver.drain(drain_s):
                clean = False
                dump(asyncio.all_tasks())
            await self._close_doors()
            if not await self.driver.left(self.config.grace_s):
                log.warning(
                    "these have not left user code, and end with the process: %s", listed(self.driver.left_behind)
                )
                clean = False
        finally:
            if self._watchdog is not None:
                self._watchdog.stop()
            self._endings.close()
            await self.driver.children.stop()
            self.driver.close()
            clean = await self._stop_functions() and clean
        return clean

    async def _stop_functions(self) -> bool:
        """Run the stop hooks that have not run; True when none failed."""
        clean = True
        for function in reversed(self._functions):
            try:
                await function.stop()
            except StartupError as error:
                clean = False
                log.error("%s", error)
        return clean

    @property
    def ports(self) -> set[int]:
        """The ports of the open doors."""
        own = {address.port for one in self._services for address in one.addresses if address.port}
        return own | {int(one.rpartition(":")[2]) for one in (self.grpc_address, self.http_address) if one}

    def leave(self) -> None:
        """Tell the clients of the HTTP door to connect anew; requests are served as before."""
        if self._http is not None:
            self._http.leave()
        for one in self._services:
            one.leave()

    def _count(self) -> Numbers:
        """What this process has counted."""
        made = numbers_of(self.engine, self.driver)
        for one in self._services:
            if (counted := one.numbers()) is not None:
                made = made.plus(counted)
        return made

    async def is_ready(self) -> bool:
        """Whether this process should get traffic: started, not draining, room for calls, functions ready."""
        if (
            self.is_lame
            or self.engine.is_loading
            or self.engine.is_draining
            or self.driver.threads.is_failing
            or self._is_full
        ):
            return False
        for function in self._functions:
            if not await function.is_ready():
                return False
        return True

    @property
    def _is_full(self) -> bool:
        """Whether calls have been refused for ``full_s`` seconds, because every slot is taken."""
        full_s = self.config.full_s
        since = [one for one in (self.engine.full_since, self.driver.threads.full_since) if one]
        return bool(full_s and since) and time.monotonic() - min(since) >= full_s

    def ready_block(self) -> str:
        """What is served, where, and a call to copy (R-005)."""
        config = self.config
        host, why = config.bind_host()
        spoken = ", ".join(one.name for one in self._kinds)
        why += f"; {config.workers} workers" if self.share_ports else ""
        command = ""
        if self.grpc_address and not config.tls_cert:  # with TLS only the caller knows what to trust
            spec, address, is_one = self._functions[0].spec, near(host, self.grpc_address), len(self._functions) == 1
            samples = (one.sample(spec, address, is_one=is_one) for one in reversed(self._services))
            command = next((one for one in samples if one), "")
        return ready_block([one.spec.name for one in self._functions], f"{self._served()} ({why})", spoken, command)

    def _served(self) -> str:
        """The addresses of the open doors."""
        addresses = [("grpc", self.grpc_address), ("http", self.http_address), ("http", self.config.http_unix)]
        addresses += [(address.door, address.text) for one in self._services for address in one.addresses]
        return " ".join(f"{door}={address}" for door, address in addresses if address)

    async def _open_others(self, tls: TlsFiles | None) -> None:
        """Start the services, which open their own sockets; then open the HTTP door, which also serves them."""
        for one in self._services:
            await one.start()
        if self._table.has_http(self.config):
            await self._open_http(tls)

    async def _open_grpc(self, tls: TlsFiles | None) -> None:
        config = self.config
        methods = tuple(method for one in self._services for method in one.grpc_methods())
        names = tuple(method.service for method in methods)
        self._grpc = self._make_grpc(tls, methods)
        for one in self._services:
            one.add_servicers(self._grpc.server, names)
        host, _ = config.bind_host()
        port = self._grpc.bind(spelled(host, config.grpc_port))
        await self._grpc.start()
        self.grpc_address = spelled(host, port)

    def _is_fast(self) -> bool:
        """Whether the fast door serves. The answer is kept, since it takes a call through grpcio's private layer.

        Raises:
            ConfigError: It is asked for and cannot.
        """
        if self._fast is None:
            self._fast = False
            if self.config.grpc_driver != "aio":
                from invoker.doors.grpc.cygrpc import unusable

                why = unusable()
                self._fast = not why
                if why and self.config.grpc_driver == "fast":
                    raise ConfigError(
                        f"INVOKER_GRPC_DRIVER is 'fast', which cannot serve with the installed grpcio: {why}"
                    )
                if why:
                    log.warning(
                        "gRPC is served by grpc.aio, because the fast gRPC server cannot use the installed grpcio: %s",
                        why,
                    )
        return self._fast

    def _make_grpc(self, tls: TlsFiles | None, methods: tuple[Method, ...]) -> AioDoor | FastDoor:
        """Make the fast door, or the public one if that is chosen or the fast one does not work."""
        config = self.config
        credentials = tls.grpc_credentials() if tls is not None else None
        settings = GrpcSettings(
            max_message_bytes=config.max_message_bytes,
            max_streams=config.max_streams,
            settle_s=config.settle_s,
            share_port=self.share_ports,
            connection_age_s=config.connection_age_s if self.share_ports else 0.0,
        )
        if self._is_fast():
            from invoker.doors.grpc.fast import FastDoor

            return FastDoor(self.driver, methods=methods, credentials=credentials, settings=settings)
        from invoker.doors.grpc.aio import AioDoor

        return AioDoor(self.driver, methods=methods, credentials=credentials, settings=settings)

    async def _open_http(self, tls: TlsFiles | None) -> None:
        from invoker.doors.http.door import HttpDoor
        from invoker.doors.http.exchange import HttpSettings

        config = self.config
        host, _ = config.bind_host()
        apps = (app for one in reversed(self._services) if (app := one.websocket()) is not None)
        self._http = HttpDoor(
            self.driver,
            self._front,
            host=host,
            port=config.port,
            settings=HttpSettings(origins=config.allowed_origins, hosts=config.allowed_hosts),
            tls=tls,
            share_port=self.share_ports,
            sockets=next(apps, None),
            unix=config.http_unix,
            unix_mode=config.unix_mode,
        )
        self.http_address = await self._http.start()

    def _front(self, path: str) -> Front | None:
        """Who answers a path of the HTTP door."""
        for one in self._fronts:
            if (front := one(path)) is not None:
                return front
        return None

    async def _close_doors(self) -> None:
        if self._http is not None:
            await self._http.stop(_STOP_GRACE_S)
        if self._grpc is not None:
            await self._grpc.stop(_STOP_GRACE_S)
        for one in self._services:
            await one.stop(_STOP_GRACE_S)
