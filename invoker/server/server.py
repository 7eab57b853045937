"""The composition root: functions, engine, driver, transports and observers become one serving process.

Order of a start: start hooks, then bind, then answer, then the ready line (R-014). Order of a stop: health reports not
ready, no new invocations, running ones end within the drain, transports close, bodies end, stop hooks run (R-018,
R-024, R-025).
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from invoker.attach.service import Service, Surroundings, spoken_at
from invoker.author.lift import Function
from invoker.codecs import Registry
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.core.policy import ErrorPolicy
from invoker.core.streams import Limits
from invoker.errors import StartupError, Status
from invoker.execution.driver import Driver, DriverSettings
from invoker.execution.isolation.pool import ChildrenSettings
from invoker.execution.nested.scope import CatalogScope
from invoker.execution.placement import placement_of
from invoker.server.stopping import Guard, dump, listed
from invoker.server.table import TABLE, Table
from invoker.server.transports import MountedTransports, Transports
from invoker.settings import Config
from invoker.settings.cores import usable_cores
from invoker.stores import store_of
from invoker.telemetry import logs
from invoker.telemetry import stdout_capture as prints
from invoker.telemetry.board import Numbers
from invoker.telemetry.endings import Endings
from invoker.telemetry.memory import Trimmer
from invoker.telemetry.metrics import numbers_of
from invoker.telemetry.pressure import Pressure
from invoker.telemetry.ready import ready_block, untyped
from invoker.telemetry.samples import near
from invoker.telemetry.watchdog import Watchdog
from invoker.transports.sockets import raise_open_files
from invoker.transports.tls import TlsFiles

if TYPE_CHECKING:
    from invoker.transports.http.mounted import MountedTransport

log = logging.getLogger(__name__)

_GC_THRESHOLDS = (20_000, 20, 20)
"""The thresholds of the garbage collector. They are high, since the cycles that an invocation leaves behind hold none
of its payloads."""
_STOP_GRACE_S = 1.0

_BAD_INPUT = {"unknown": Status.UNKNOWN, "invalid-argument": Status.INVALID_ARGUMENT}
"""The status for a payload that cannot be decoded (R-069), by the value of the setting."""

_CLOSE_LIMIT_S = 5.0
"""Seconds that all transports together have to close before the stop counts as stuck."""


class Server:
    """Serves functions through the gRPC and the HTTP transport.

    Args:
        config: Every setting.
        catalog: The functions to serve.
        registry: Codecs.
        actions: A dict from names of actions to names of functions, besides the functions' own names.
        table: The table of services.
        is_guest: Whether the process belongs to another program. Then settings of the whole process are not changed:
            the limit of open files, and the garbage collector.
        is_mounted: Whether the sockets also belong to that program, which passes requests to `application`; then only
            the HTTP transport is served.

    Attributes:
        share_ports: Whether other processes may bind the same ports.
        guard: Limits the time that the end of the process takes.
        is_lame: Whether the server reports that it is not ready while it still takes calls.
        numbers: The numbers that `/metrics` reports.
    """

    def __init__(
        self,
        config: Config,
        catalog: Catalog,
        registry: Registry,
        *,
        actions: Mapping[str, str] | None = None,
        table: Table = TABLE,
        is_guest: bool = False,
        is_mounted: bool = False,
    ) -> None:
        self.config = config
        self._is_guest = is_guest or is_mounted
        self._is_mounted = is_mounted
        limits = Limits(config.high_frames, config.high_bytes, config.hard_frames, config.hard_bytes)
        self.engine = Engine(
            catalog,
            registry,
            limits=limits,
            max_invocations=config.max_invocations,
            check_outputs=config.check_outputs,
            memory_bytes=config.memory_bytes,
            policy=ErrorPolicy(config.shown_detail, _BAD_INPUT[config.bad_input]),
            new_lock=threading.Lock,  # direct conversations open and close invocations in their own threads
        )
        self.engine.limit_calls(config.calls_per_minute)
        self._endings = Endings()
        self.engine.on_close += [self._endings, prints.ended]
        codecs = tuple(one.child_codecs for one in table.served(config) if one.child_codecs)
        told = (*config.for_children(), ("codecs", codecs))
        children = ChildrenSettings(config.children, config.warm_children, told, usable_cores())
        settings = DriverSettings(
            config.threads, config.grace_s, config.lingering_s, config.debug, config.call_depth, children
        )
        self.driver = Driver(self.engine, settings, store=store_of(config.store))
        self.engine.scope = CatalogScope(self.driver)
        self._trimmer = Trimmer(self.engine.memory, self.driver.threads)
        self._pressure = Pressure(self.driver)
        self.share_ports = False
        self.numbers: Callable[[], Numbers] = self._count
        self._functions: Sequence[Function] = tuple(catalog)
        self._hooks_limit_s = sum(function.hooks.stop_limit_s for function in self._functions)
        self.guard = Guard(lambda: asyncio.run(self._stop_functions()), self._hooks_limit_s, told=self.end_rest)
        self.is_lame = False
        self._actions = dict(actions or {})
        self._services: tuple[Service, ...] = ()
        self._table = table
        self._kinds = tuple(one for one in table.served(config) if one.on_http or not (is_mounted and one.on_grpc))
        has_grpc = not is_mounted and any(one.on_grpc for one in self._kinds)
        make_transports = MountedTransports if is_mounted else Transports
        self._transports = make_transports(config, self.driver, has_grpc=has_grpc, has_http=table.has_http(config))
        self._watchdog: Watchdog | None = None

    @property
    def lends(self) -> bool:
        """Whether the fast transport will serve async functions or sessions, and so needs a `QueuePollingLoop`.

        On such a loop sessions are 1.7 times as fast, and HTTP requests are a tenth slower.
        """
        on_loop = not self.driver.is_direct or any(one.on_loop for one in self._kinds)
        return on_loop and self._transports.lends

    @property
    def application(self) -> MountedTransport:
        """The ASGI application of a mounted server, once it has started."""
        assert isinstance(self._transports, MountedTransports)
        assert self._transports.mounted is not None
        return self._transports.mounted

    @property
    def grpc_address(self) -> str:
        """``host:port`` of the gRPC transport once started; empty when nothing is served on it."""
        return self._transports.grpc_address

    @property
    def http_address(self) -> str:
        """``host:port`` once started; empty without the HTTP transport."""
        return self._transports.http_address

    async def start(self) -> None:
        """Run the start hooks, bind both transports, and answer.

        The HTTP transport and the services' own sockets open before hooks that take time: they report that this process
        is not ready, answer requests that need no function, and refuse calls. The gRPC transport opens after them
        (R-014, ADR 15), as all transports of workers do, since another worker on the same ports may be ready.

        Raises:
            HookError: A start hook failed; the stop hooks have run.
            StartupError: A port cannot be bound, a certificate cannot be read, or the store cannot be opened.
        """
        if not self._is_guest:
            raise_open_files()
        for name, why in self._table.left_out(self.config).items():  # raises an error for one that was asked for
            log.debug("%s is not served: %s", name, why)
        self.driver.store.start(asyncio.get_running_loop().call_later)
        tls = TlsFiles.of(self.config.tls_cert, self.config.tls_key, self.config.tls_client_ca)
        around = Surroundings(
            *(self.config, self.driver, self._actions, self.is_ready, self.numbers, self._endings.note, tls),
            *(self.share_ports, self._table.is_asked(self.config)),
            http_address=lambda: self.http_address if self._transports.has_http and not self._is_mounted else None,
            files=lambda: tuple(file for one in self._services for file in one.files()),
            spoken=lambda: spoken_at(self._services[: len(self._kinds)], self.grpc_address, self.http_address),
            hides=self._transports.hides,
            is_lame=lambda: self.is_lame,
            families=lambda: tuple(one.families for one in self._services),
        )
        self._services = tuple(kind(around) for kind in (*self._kinds, *self._table.own(self.config)))
        self._transports.serve(self._services, share_ports=self.share_ports)
        self.engine.is_loading = not self.share_ports and any(one.hooks.takes_time for one in self._functions)
        if is_early := self.engine.is_loading:
            await self._open_others(tls)
            if served := self._served():
                log.info("loading: calls on %s are refused until the functions are ready", served)
        _keep_policy()
        for function in self._functions:
            await function.start()
        _keep_policy()
        logs.keep()  # a hook may have set up logging, too
        await self.driver.children.start()
        self.engine.is_loading = False
        if self._transports.has_grpc:
            await self._transports.open_grpc(tls)
        if not is_early:
            await self._open_others(tls)
        if self.config.blocked_s and not self.driver.is_direct:
            self._watchdog = Watchdog(self.config.blocked_s)
            self._watchdog.start()
        self._log_placements()
        self._trimmer.start()
        self._pressure.start()
        if not self._is_guest:
            gc.collect()
            gc.freeze()  # objects made by now live as long as the process, so the collector should skip them
            gc.set_threshold(*_GC_THRESHOLDS)

    def _log_placements(self) -> None:
        specs = [one.spec for one in self._functions]
        for spec in specs if log.isEnabledFor(logging.DEBUG) else ():
            log.debug("%s runs %s", spec.name, placement_of(spec, specs).value)

    @property
    def end_limit_s(self) -> float:
        """How many seconds the end of the process may take, from the first signal on."""
        config = self.config
        return config.lame_duck_s + config.drain_s + config.grace_s + self._hooks_limit_s + _CLOSE_LIMIT_S

    async def refresh_health(self) -> None:
        """Notify the watchers of grpc.health.v1 at once of changes."""
        for one in self._services:
            await one.refresh()

    async def stop(self, *, drain_s: float) -> bool:
        """Drain, close the transports, run the stop hooks; True when nothing was cut and no hook failed."""
        clean = True
        self._trimmer.stop()
        self._pressure.stop()
        self.engine.is_draining = True
        await self.refresh_health()
        try:
            if not await self.driver.drain(drain_s):
                clean = False
                if not self._is_guest:  # other tasks belong to the host
                    dump(asyncio.all_tasks())
            await self._close_transports()
            if not await self.driver.left(self.config.grace_s):
                log.warning("user code has not returned and ends with the process: %s", listed(self.driver.left_behind))
                clean = False
        finally:
            if self._watchdog is not None:
                self._watchdog.stop()
            self._endings.close()
            await self.driver.children.stop()
            self.driver.close()
            clean = await self._stop_functions() and clean
        return clean

    def abandon(self) -> None:
        """Release what outlives a loop that was closed without a stop: threads, children, buffered log records."""
        self.driver.children.abandon()
        self._endings.close()
        self.driver.close()

    def end_rest(self) -> None:
        """Log all invocations that still run, since the process ends now; may be called from any thread."""
        self.driver.end_rest()
        self._endings.close()

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
        """The ports of the open transports."""
        own = {address.port for one in self._services for address in one.addresses if address.port}
        return own | self._transports.ports

    def leave(self) -> None:
        """Ask the clients of the HTTP transport to reconnect; requests are served as before."""
        self._transports.leave()
        for one in self._services:
            one.leave()

    def _count(self) -> Numbers:
        """The counts of this process: of the engine, the driver and all services."""
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
        """The message of the ready line: the functions, the addresses, and an example of a call (R-005)."""
        config = self.config
        host, why = config.bind_host()
        spoken = ", ".join(one.name for one in self._kinds)
        why += f"; {config.workers} workers" if self.share_ports else ""
        command = ""
        if self.grpc_address and not config.tls_cert:  # with TLS the caller has to choose which certificates to trust
            spec, address, is_one = self._functions[0].spec, near(host, self.grpc_address), len(self._functions) == 1
            samples = (one.sample(spec, address, is_one=is_one) for one in reversed(self._services))
            command = next((one for one in samples if one), "")
        names, path = (
            [one.spec.name for one in self._functions],
            next(filter(None, (one.page for one in self._services)), ""),
        )
        page = f"http{'s' if config.tls_cert else ''}://{near(host, self.http_address)}{path}" if path else ""
        note = untyped(function.spec for function in self._functions)
        return ready_block(names, f"{self._served()} ({why})", spoken, command, page, note)

    def _served(self) -> str:
        """The addresses of the open transports."""
        addresses = [("grpc", self.grpc_address), ("http", self.http_address), ("http", self.config.http_unix)]
        addresses += [(address.transport, address.text) for one in self._services for address in one.addresses]
        return " ".join(f"{transport}={address}" for transport, address in addresses if address)

    async def _open_others(self, tls: TlsFiles | None) -> None:
        """Start the services, which open their own sockets; then open the HTTP transport, which also serves them."""
        for one in self._services:
            await one.start()
        if self._transports.has_http:
            await self._transports.open_http(tls)

    async def _close_transports(self) -> None:
        await self._transports.close(_STOP_GRACE_S)
        for one in self._services:
            await one.stop(_STOP_GRACE_S)


def _keep_policy() -> None:
    """Let functions start programs, even if an author has called ``uvloop.install()`` and this loop is another one.

    Before Python 3.14 the watcher of such programs comes from asyncio's policy, and uvloop's policy has none.
    """
    is_uvloop = type(asyncio.get_running_loop()).__module__.startswith("uvloop")
    if sys.version_info < (3, 14) and not is_uvloop:
        if type(asyncio.get_event_loop_policy()).__module__.startswith("uvloop"):
            asyncio.set_event_loop_policy(None)
