"""`build`: makes a server from functions or entrypoints; `loop_factory` chooses its event loop."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from invoker.errors import ConfigError, FunctionError, StartupError
from invoker.server.table import TABLE
from invoker.settings import Config
from invoker.telemetry import logs

if TYPE_CHECKING:
    from invoker.author.lift import Function
    from invoker.server.server import Server

log = logging.getLogger(__name__)


def build(config: Config, *what: Any, is_guest: bool = False, is_mounted: bool = False) -> Server:
    """A server, ready to run.

    Args:
        config: Every setting.
        what: Functions, modules of functions, entrypoints of either, or a file that a protocol takes instead.
        is_guest: Whether the process belongs to another program; see `Server`.
        is_mounted: Whether the sockets also belong to that program; see `Server`.

    Raises:
        StartupError: A function cannot be loaded, understood or served.
    """
    from importlib.util import find_spec

    from invoker.author.prepare import prepare_all
    from invoker.codecs import builtin, wants_arrays
    from invoker.core.catalog import Catalog
    from invoker.server.server import Server
    from invoker.transports.sockets import check_address_space

    check_address_space()
    files = [one for one in what if isinstance(one, str) and TABLE.entry_file(one) is not None]
    for one in files:
        _check_file(config, one)
    functions = [one for one in what if one not in files]
    found = prepare_all(functions, allow_pickle=config.allow_pickle, hook_timeout_s=config.hook_timeout_s)
    actions: dict[str, str] = {}
    for row in reversed(TABLE.rows):
        found, named = row.add_functions(config, found)
        actions |= named
    logs.keep()
    for prepared in found:
        for warning in prepared.warnings:
            log.warning("%s", warning)
    renew = _renewer(functions, config) if config.reload_per_invocation else None
    catalog = Catalog([prepared.function for prepared in found], renew=renew, tells=config.reflection)
    arrays = any(wants_arrays(prepared.spec.types) for prepared in found)
    if not arrays and any(
        one.gives_arrays for one in TABLE.served(config)
    ):  # G-068: a parameter without an annotation gets a tensor as an array
        arrays = find_spec("numpy") is not None and any(Any in prepared.spec.types for prepared in found)
    registry = builtin(pickle=config.pickle_codec, arrays=arrays, max_containers=config.max_containers)
    return Server(config, catalog, registry, actions=actions, is_guest=is_guest, is_mounted=is_mounted)


def loop_factory(server: Server) -> Any:
    """The factory of the loop: async functions on the fast transport need a loop that drains grpcio's queue itself."""
    wanted = server.config.loop
    if server.lends and wanted != "uvloop":
        from invoker.transports.grpc.queue_poller import QueuePollingLoop

        return QueuePollingLoop
    if wanted == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        if wanted == "uvloop":
            raise ConfigError("INVOKER_LOOP is 'uvloop', which is not installed; pip install uvloop") from None
        return None
    return uvloop.new_event_loop


def _check_file(config: Config, entrypoint: str) -> None:
    """Refuse settings with which a file in place of an entrypoint cannot be served."""
    file = TABLE.entry_file(entrypoint)
    assert file is not None
    if config.reload_per_invocation:
        raise ConfigError(f"--reload-per-invocation serves one entrypoint, and {file.what} may name several")
    if not any(one.entry_file == file for one in TABLE.served(config)):
        raise ConfigError(f"'{entrypoint}' is {file.what}, which INVOKER_PROTOCOLS leaves out")


def _renewer(what: list[Any], config: Config) -> Callable[[Function], Function]:
    """R-010: Return a function that loads a function again for each invocation. Functions with hooks are refused."""
    from invoker.author.prepare import prepare_all

    if not all(isinstance(one, str) for one in what):
        raise ConfigError("--reload-per-invocation reloads a module; name the function, as 'module:function'")

    def renew(function: Function) -> Function:
        name = function.spec.name
        try:
            found = prepare_all(what, allow_pickle=config.allow_pickle, fresh=True)
        except StartupError as error:
            raise FunctionError(f"'{name}' cannot be reloaded: {error.detail}") from error
        for prepared in found:
            if prepared.spec.name == name:
                return prepared.function
        raise FunctionError(f"'{name}' no longer exists after its module was reloaded")

    for prepared in prepare_all(what, allow_pickle=config.allow_pickle):
        hooks = prepared.spec.hooks
        if hooks.init or hooks.destroy or prepared.spec.call.make:
            raise ConfigError(
                f"--reload-per-invocation cannot serve '{prepared.spec.name}', which has hooks or is a class"
            )
    return renew
