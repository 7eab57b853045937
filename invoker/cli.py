"""The command line: ``python -m invoker ENTRYPOINT`` serves; other commands call, talk, explain and judge.

Exit codes: 0 a clean end, 1 a failure (one line says which), 2 a bad knob or argument, 128+n a second signal n.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from invoker import config as knobs
from invoker.errors import StartupError

if TYPE_CHECKING:
    from invoker.server import Server

__all__ = ["build", "main", "parser"]

log = logging.getLogger(__name__)

_COMMANDS = ("serve", "call", "chat", "inspect", "conformance")

_EPILOG = """\
commands:
  invoker [serve] ENTRYPOINT   serve a function: mymod:fn, pkg.mod:Class, ./file.py:fn, or a module with @function
  invoker call HOST:PORT       stream values to any riff invoker, and print what comes back
  invoker chat HOST:PORT       hold a conversation with an action of any Evergreen server
  invoker inspect ENTRYPOINT   say how a function's signature is understood
  invoker conformance          judge any riff invoker from outside

'invoker COMMAND --help' says more. Every flag below has an environment variable; flags win.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: Without the program's name; default: the process's own.

    Returns:
        The exit code.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # grpc's own lines say in C++ what we say in a sentence
    args = list(sys.argv[1:] if argv is None else argv)
    command = args[0] if args and args[0] in _COMMANDS else ""
    if command == "conformance":
        from invoker.conformance.cli import main as judge

        return judge(args[1:])
    run: Callable[[argparse.Namespace], int] = _serve
    if command in ("call", "chat", "inspect"):
        made, run = _client_command(command)
    else:
        made = parser()
    options = made.parse_args(args[1:] if command else args)
    try:
        return run(options)
    except StartupError as error:
        print(f"invoker: {error.detail}", file=sys.stderr)
        if getattr(options, "debug", False):
            raise
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """The parser of ``serve``; its flags are the knobs of `invoker.config`."""
    made = argparse.ArgumentParser(
        prog="invoker",
        description="Serve a Python function or generator as a streaming service.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "entrypoint", metavar="ENTRYPOINT", help="mymod:fn, pkg.mod:Class, ./file.py:fn, file.pkl, or a module"
    )
    made.add_argument(
        "--reload", action="store_true", help="serve anew whenever a file of the function changes (development)"
    )
    for one in knobs.knobs():
        knob, flag = knobs.knob_of(one), knobs.flag_of(one)
        unit, many = " " + knob.unit if knob.unit else "", "; repeatable" if knob.many else ""
        note = f" [{knob.env}; default {_shown(one.default)}{unit}{many}]"
        text = (knob.help + note).replace("%", "%%")
        if isinstance(one.default, bool):
            action = "store_false" if flag.startswith("--no-") else "store_true"
            made.add_argument(flag, dest=one.name, action=action, default=None, help=text)
        else:
            action = "append" if knob.many else "store"
            made.add_argument(flag, dest=one.name, action=action, default=None, metavar=_metavar(knob), help=text)
    return made


def _serve(options: argparse.Namespace) -> int:
    given = {one.name: getattr(options, one.name) for one in knobs.knobs()}
    config = knobs.Config.read(os.environ, {name: value for name, value in given.items() if value is not None})
    from invoker.errors import ConfigError
    from invoker.ops.logs import set_up

    set_up(config.log_level, config.log_format)
    if "INVOKER_WORKER" in os.environ:
        from invoker.worker import Place, work

        build_own = functools.partial(build, entrypoint=options.entrypoint)
        return work(Place.taken(), config, build_own, _loop_factory)
    if config.workers > 1:
        from invoker.supervisor import supervise

        if options.reload:
            raise ConfigError(
                f"--reload serves with one process, and there are to be {config.workers} workers; "
                "leave one of them out, or send SIGHUP when the code has changed"
            )
        return supervise(config, sys.argv[1:])
    if options.reload:
        from invoker.reload import serve_with_reload

        return serve_with_reload(options.entrypoint, sys.argv[1:])
    server = build(config, options.entrypoint)
    try:
        with asyncio.Runner(loop_factory=_loop_factory(server)) as runner:
            code: int = runner.run(server.run())
            return code
    finally:
        logging.shutdown()


def build(config: knobs.Config, entrypoint: str) -> Server:
    """A server for what an entrypoint names, ready to run.

    Raises:
        StartupError: It cannot be loaded, understood or served.
    """
    from invoker.codecs import builtin, wants_arrays
    from invoker.core.catalog import Catalog
    from invoker.prepare import prepare, with_actions
    from invoker.server import Server

    found = prepare(entrypoint, allow_pickle=config.allow_pickle, hook_timeout_s=config.hook_timeout_s)
    found, actions = with_actions(
        found, config.actions, allow_pickle=config.allow_pickle, hook_timeout_s=config.hook_timeout_s
    )
    for prepared in found:
        for warning in prepared.warnings:
            log.warning("%s", warning)
    renew = _renewer(entrypoint, config) if config.reload_per_invocation else None
    catalog = Catalog([prepared.function for prepared in found], renew=renew)
    arrays = any(wants_arrays(prepared.spec.types) for prepared in found)
    return Server(config, catalog, builtin(pickle=config.pickle_codec, arrays=arrays), actions=actions)


def _renewer(entrypoint: str, config: knobs.Config) -> Callable[[Any], Any]:
    """R-010: makes a function anew for one invocation; hooks would run never or always, so they are refused."""
    from invoker.errors import ConfigError
    from invoker.prepare import prepare

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
        from invoker import call as module

        about = "Stream values to a riff invoker, and print what comes back as it comes."
    elif command == "chat":
        from invoker import chat as module  # type: ignore[no-redef]

        about = "Hold a conversation in the terminal with an action of any Evergreen server."
    else:
        from invoker import inspect_cmd as module  # type: ignore[no-redef]

        about = "Say how a function's signature is understood, or precisely what is wrong with it."
    made = argparse.ArgumentParser(
        prog=f"invoker {command}", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    module.add_arguments(made)
    return made, module.run


def _loop_factory(server: Server) -> Any:
    """What makes the loop: async functions on the fast door want one that drains grpcio's queue itself."""
    wanted = server.config.loop
    if server.lends and wanted != "uvloop":
        from invoker.transports.lending import LendingLoop

        return LendingLoop
    if wanted == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        if wanted == "uvloop":
            from invoker.errors import ConfigError

            raise ConfigError("INVOKER_LOOP is 'uvloop', which is not installed; pip install uvloop") from None
        return None
    return uvloop.new_event_loop


def _metavar(knob: knobs.Knob) -> str:
    if knob.choices:
        return "|".join(knob.choices)
    return {"seconds": "S", "bytes": "N"}.get(knob.unit, "N" if knob.unit else "VALUE")


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    if isinstance(default, tuple):
        return ",".join(default) or "unset"
    return f"{default:g}" if isinstance(default, float) else str(default) or "unset"
