"""The command line: ``python -m invoker ENTRYPOINT`` serves; other commands call, talk, explain and judge.

Exit codes: 0 a clean end, 1 a failure (one line says which), 2 a bad knob or argument, 128+n a second signal n.
"""

from __future__ import annotations

import argparse
import functools
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from invoker.cli.flags import COMMANDS, command_meant, parser
from invoker.config import Config
from invoker.errors import ConfigError, LoadError, StartupError
from invoker.services.actions import ActionKnobs
from invoker.services.federated.service import FederatedKnobs, FederatedService
from invoker.services.table import TABLE
from invoker.usage import Parser

if TYPE_CHECKING:
    from invoker.body.prepare import Prepared
    from invoker.process.server import Server

__all__ = ["build", "main"]

log = logging.getLogger(__name__)

_ROUNDS = ".toml"
"""How the name of a file of federated rounds ends, which may stand where an entrypoint does."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: Without the program's name; default: the process's own.

    Returns:
        The exit code.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # our own sentences replace grpc's log lines
    args = list(sys.argv[1:] if argv is None else argv)
    command = args[0] if args and args[0] in COMMANDS else ""
    if command == "conformance":
        from invoker.conformance.cli import main as judge

        return judge(args[1:])
    run: Callable[[argparse.Namespace], int] = _serve
    if command not in ("", "serve"):
        made, run = _client_command(command)
    else:
        made = parser()
        if not args:
            made.exit(2, f"{made.format_usage()}\n{made.description}\n")
    options = made.parse_args(args[1:] if command else args)
    try:
        options.is_process = argv is None
        return run(options)
    except StartupError as error:
        meant = command_meant(args[0]) if isinstance(error, LoadError) and not command else ""
        print(f"invoker: {error.detail}" + (f"; or did you mean '{meant}'?" if meant else ""), file=sys.stderr)
        if getattr(options, "debug", False):
            raise
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _serve(options: argparse.Namespace) -> int:
    given = {one.name: getattr(options, one.name) for one in TABLE.knobs}
    if options.entrypoint.endswith(_ROUNDS):
        given["federated"] = options.entrypoint
    config = TABLE.read(os.environ, {name: value for name, value in given.items() if value is not None})
    from invoker.cli.variables import strays
    from invoker.ops.logs import set_up
    from invoker.process.stopping import limit_exit

    is_text = set_up(config.log_level, config.log_format)
    if options.is_process and not is_text:
        from invoker.ops.prints import print_objects

        print_objects()
    is_worker = "INVOKER_WORKER" in os.environ
    if not is_worker and not options.reload:  # so that each warning is written once
        for stray in strays(os.environ):
            log.warning("%s", stray)
    if is_worker:
        from invoker.process.worker import Assignment, work

        build_own = functools.partial(build, entrypoint=options.entrypoint)
        try:
            return work(Assignment.taken(), config, build_own, _loop_factory)
        finally:
            if options.is_process:  # otherwise the caller's program goes on
                limit_exit(config.hook_timeout_s)
    if config.workers > 1:
        from invoker.process.supervisor import supervise

        if options.reload:
            raise ConfigError(
                f"--reload works with one process only, but {config.workers} workers are asked for; "
                "leave one of them out, or send SIGHUP when the code has changed"
            )
        return supervise(config, sys.argv[1:])
    if options.reload:
        from invoker.process.reload import serve_with_reload

        return serve_with_reload(options.entrypoint, sys.argv[1:])
    from invoker.process import life
    from invoker.process.reload import taken_drain_s

    server = build(config, options.entrypoint)
    try:
        main = functools.partial(life.run, server, hangup_drain_s=taken_drain_s(config))
        return life.run_to_end(server, main, _loop_factory(server))
    finally:
        if options.is_process:
            limit_exit(config.hook_timeout_s)
        logging.shutdown()


def build(config: Config, entrypoint: str) -> Server:
    """A server for what an entrypoint names, ready to run.

    Raises:
        StartupError: It cannot be loaded, understood or served.
    """
    from importlib.util import find_spec

    from invoker.body.prepare import prepare, with_actions
    from invoker.codecs import builtin, wants_arrays
    from invoker.core.catalog import Catalog
    from invoker.process.server import Server

    found: tuple[Prepared, ...] = ()
    if entrypoint.endswith(_ROUNDS):
        _check_rounds(config, entrypoint)
    else:
        found = prepare(entrypoint, allow_pickle=config.allow_pickle, hook_timeout_s=config.hook_timeout_s)
    if config.of(FederatedKnobs).federated:
        from invoker.services.federated.setups import with_aggregators

        found = with_aggregators(config.of(FederatedKnobs).federated, found, config)
    found, actions = with_actions(
        found, config.of(ActionKnobs).actions, allow_pickle=config.allow_pickle, hook_timeout_s=config.hook_timeout_s
    )
    for prepared in found:
        for warning in prepared.warnings:
            log.warning("%s", warning)
    renew = _renewer(entrypoint, config) if config.reload_per_invocation else None
    catalog = Catalog([prepared.function for prepared in found], renew=renew)
    arrays = any(wants_arrays(prepared.spec.types) for prepared in found)
    if not arrays and any(
        one.gives_arrays for one in TABLE.served(config)
    ):  # G-068: a parameter without an annotation gets a tensor as an array
        arrays = find_spec("numpy") is not None and any(Any in prepared.spec.types for prepared in found)
    registry = builtin(pickle=config.pickle_codec, arrays=arrays, max_containers=config.max_containers)
    return Server(config, catalog, registry, actions=actions)


def _check_rounds(config: Config, entrypoint: str) -> None:
    """Refuse knobs with which a file of rounds cannot be served."""
    if config.reload_per_invocation:
        raise ConfigError("--reload-per-invocation serves one entrypoint, and a file of rounds may name several")
    if FederatedService not in TABLE.served(config):
        raise ConfigError(f"'{entrypoint}' is a file of federated rounds, which INVOKER_PROTOCOLS leaves out")


def _renewer(entrypoint: str, config: Config) -> Callable[[Any], Any]:
    """R-010: Return what loads a function anew for each invocation. Functions with hooks are refused."""
    from invoker.body.prepare import prepare

    def renew(function: Any) -> Any:
        for prepared in prepare(entrypoint, allow_pickle=config.allow_pickle, fresh=True):
            if prepared.spec.name == function.spec.name:
                return prepared.function
        return function

    for prepared in prepare(entrypoint, allow_pickle=config.allow_pickle):
        hooks = prepared.spec.hooks
        if hooks.init or hooks.destroy or prepared.spec.call.make:
            raise ConfigError(
                f"--reload-per-invocation cannot serve '{prepared.spec.name}', which has hooks or is a class"
            )
    return renew


def _client_command(command: str) -> tuple[argparse.ArgumentParser, Callable[[argparse.Namespace], int]]:
    if command == "call":
        from invoker.cli import call as module

        about = "Stream values to a riff invoker, and print what comes back as it comes."
    elif command == "chat":
        from invoker.cli import chat as module  # type: ignore[no-redef]

        about = "Hold a conversation in the terminal with an action of any Evergreen server."
    elif command == "device":
        from invoker.cli import device as module  # type: ignore[no-redef]

        about = "Be a device, or many, that trains functions in rounds of a federated server."
    elif command == "simulate":
        from invoker.cli import simulate as module  # type: ignore[no-redef]

        about = "Simulate the rounds of a file with all their devices, in one process."
    elif command == "completion":
        from invoker.cli import completion as module  # type: ignore[no-redef]

        about = "Print what makes a shell complete the commands and flags of this command line."
    else:
        from invoker.cli import inspect as module  # type: ignore[no-redef]

        about = "Say how a function's signature is understood, or precisely what is wrong with it."
    made = Parser(prog=f"invoker {command}", description=about)
    module.add_arguments(made)
    return made, module.run


def _loop_factory(server: Server) -> Any:
    """What makes the loop: async functions on the fast door want one that drains grpcio's queue itself."""
    wanted = server.config.loop
    if server.lends and wanted != "uvloop":
        from invoker.doors.grpc.lending import LendingLoop

        return LendingLoop
    if wanted == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        if wanted == "uvloop":
            raise ConfigError("INVOKER_LOOP is 'uvloop', which is not installed; pip install uvloop") from None
        return None
    return uvloop.new_event_loop
