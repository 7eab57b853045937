"""`serve`: serves functions of a program or a notebook, on ports of their own.

A plain program serves until a signal stops it. In a notebook, beside a running event loop, and in any thread but the
main one, `serve` returns a `Serving` at once, and the caller continues. In a notebook a cell is run again and again, so
a new server there takes the place and the ports of an earlier one that serves functions of the same names.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self

from invoker.author.prepare import prepare_all
from invoker.errors import ConfigError
from invoker.server.background import Background
from invoker.server.building import build, loop_factory
from invoker.server.foreground import run_here
from invoker.server.given import config_of, spelled
from invoker.server.server import Server
from invoker.server.table import TABLE
from invoker.settings import Config
from invoker.telemetry.samples import near

_REPLACED_S: Final = 1.0
"""Seconds that the invocations of a server may continue when another server takes its place."""

_RUNNING: list[Serving] = []
"""The servers in the background, oldest first."""


class Serving:
    """Functions that are served in the background, until `stop`, the end of a ``with`` block, or the program's end.

    Attributes:
        functions: The names of the functions.
        http_url: The URL of the HTTP port, as ``http://localhost:PORT``; empty if there is none.
        grpc_address: The address of the gRPC port, as ``localhost:PORT``; empty if there is none.
    """

    def __init__(self, server: Server, background: Background | None = None) -> None:
        host, _ = server.config.bind_host()
        scheme = "https" if server.config.tls_cert else "http"
        self.functions = tuple(function.spec.name for function in server.engine.catalog)
        self.http_url = server.http_address and f"{scheme}://{near(host, server.http_address)}"
        self.grpc_address = server.grpc_address and near(host, server.grpc_address)
        self._background = background

    @property
    def is_running(self) -> bool:
        """Whether it serves now, or drains."""
        return self._background is not None and self._background.is_running

    def stop(self, drain_s: float | None = None) -> bool:
        """Let running invocations end, and stop; True if all of them ended. It may be called again, in any thread.

        Args:
            drain_s: How long they may continue; default: ``drain_s`` of the settings, 30 seconds.
        """
        _forget(self)
        return self._background is None or self._background.stop(drain_s)

    async def stop_async(self, drain_s: float | None = None) -> bool:
        """Stop as `stop` does, in an async program whose event loop continues meanwhile."""
        _forget(self)
        return self._background is None or await self._background.stop_async(drain_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop_async()

    def __repr__(self) -> str:
        names = ", ".join(self.functions)
        if not self.is_running:
            return f"<Serving {names}, stopped>"
        transports = [self.http_url, self.grpc_address and f"grpc {self.grpc_address}"]
        return f"<Serving {names} on {', '.join(one for one in transports if one)}>"


def serve(*functions: Any, port: int = 0, grpc_port: int = 0, block: bool | None = None, **settings: Any) -> Serving:
    """Serve functions from a program or a notebook.

    In the main thread of a program this call serves as ``python -m invoker`` does: it logs, and returns after SIGINT or
    SIGTERM and the drain; it has no workers. In a notebook or another interactive session, beside a running event loop,
    and in any other thread it returns once the server is ready. The server then runs in a thread of its own, on the
    loopback address unless another is given::

        served = invoker.serve(square)
        httpx.post(served.http_url, json=7)
        served.stop()

    Args:
        functions: Functions of any shape, modules with functions, or entrypoints as on the command line.
        port: The HTTP port; 0 takes a free one.
        grpc_port: The port of gRPC; 0 takes a free one.
        block: Whether to serve until a signal comes; None: as described above.
        settings: Further settings, by the names of their flags: ``max_message_bytes=1024``. Settings that are not given
            come from the environment, as on the command line.

    Returns:
        The server, with its addresses; it has already stopped if this call has blocked.

    Raises:
        StartupError: A function cannot be loaded, understood or served, or a setting is invalid, or a port is taken.
        TypeError: There is no such setting.
        RuntimeError: ``block=True`` is given where the call cannot block.
    """
    if not functions:
        raise TypeError("serve() takes at least one function, module or entrypoint")
    is_session = hasattr(sys, "ps1") or bool(sys.flags.interactive)
    may_block = threading.current_thread() is threading.main_thread() and not _has_loop()
    if block and not may_block:
        raise RuntimeError(
            "serve(block=True) takes signals, so it needs the main thread and no running event loop; "
            "leave block out, and keep what serve() returns"
        )
    blocks = may_block and (not is_session if block is None else block)
    if not blocks and not os.environ.get("INVOKER_HOST", "").strip():
        # a notebook in a container must not listen on all addresses unexpectedly
        settings.setdefault("host", "127.0.0.1")
    settings = {"port": port, "grpc_port": grpc_port, **settings}
    config = _config(functions, settings)
    with spelled(settings):
        if blocks:
            server = build(config, *functions)
            run_here(server, loop_factory(server))
            return Serving(server)
        return _begun(functions, _in_place(functions, config) if is_session else config)


def _begun(functions: Sequence[Any], config: Config) -> Serving:
    """Start a server in a thread of its own, and return once it serves."""
    server = build(config, *functions, is_guest=True)
    background = Background(server, loop_factory(server))
    background.start()
    serving = Serving(server, background)
    _RUNNING.append(serving)
    atexit.register(serving.stop)
    return serving


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _config(functions: Sequence[Any], given: dict[str, Any]) -> Config:
    """The settings.

    Raises:
        ConfigError: A setting has an invalid value.
        TypeError: There is no such setting.
    """
    if str(given.get("workers") or 1) != "1":
        named = next((one for one in functions if isinstance(one, str)), "module:function")
        raise ConfigError(
            "workers are processes that import the functions by name, which serve() does not start; "
            f"run: python -m invoker {named} --workers {given['workers']}"
        )
    for one in reversed(functions):
        if isinstance(one, str) and (file := TABLE.entry_file(one)) is not None:
            given = {**given, file.setting: one}
    return config_of(given, env={name: text for name, text in os.environ.items() if name != "INVOKER_WORKERS"})


def _in_place(functions: Sequence[Any], config: Config) -> Config:
    """Stop the servers that a new one replaces, and give it their ports.

    Raises:
        StartupError: The functions cannot be served, so no server is stopped.
    """
    names = tuple(one.spec.name for one in prepare_all(functions, allow_pickle=config.allow_pickle))
    for one in tuple(_RUNNING):
        ports = _port(one.http_url), _port(one.grpc_address)
        wanted = config.port, config.grpc_port
        if one.functions == names or any(ours and ours == theirs for ours, theirs in zip(wanted, ports, strict=True)):
            one.stop(_REPLACED_S)
            config = replace(config, port=config.port or ports[0], grpc_port=config.grpc_port or ports[1])
    return config


def _port(address: str) -> int:
    return int(address.rpartition(":")[2] or 0)


def _forget(serving: Serving) -> None:
    if serving in _RUNNING:
        _RUNNING.remove(serving)
        atexit.unregister(serving.stop)
