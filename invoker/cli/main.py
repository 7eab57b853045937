"""The command line: ``python -m invoker ENTRYPOINT`` serves; ``python -m invoker COMMAND`` runs another command.

Exit codes: 0 for a clean end, 1 for a failure (explained in one line), 2 for a bad setting or argument, 128+n when
signal n came a second time.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import logging
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from invoker.author.shadows import shadowed
from invoker.cli.flags import command_meant, commands, parser
from invoker.cli.streams import arguments, with_streams
from invoker.errors import ConfigError, LoadError, StartupError
from invoker.server.building import build, loop_factory
from invoker.server.table import TABLE
from invoker.settings.usage import Parser

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments without the program's name; None: those of the process.

    Returns:
        The exit code.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # the invoker's own sentences replace grpc's log lines
    if argv is None:
        return with_streams(functools.partial(_main, arguments(), is_process=True))
    return _main(list(argv), is_process=False)


def _main(args: list[str], *, is_process: bool) -> int:
    command = args[0] if args and args[0] in commands() else ""
    if command == "conformance":
        from invoker.cli import suite

        return suite.run(args[1:])
    run: Callable[[argparse.Namespace], int] = _serve
    if command not in ("", "serve"):
        made, run = _client_command(command)
    else:
        made = serve = parser()
        serve.said = functools.partial(_as_asked, args)
        if not args:
            made.exit(2, serve.said(f"{made.format_usage()}\n{made.description}") + "\n")
    options = made.parse_args(args[1:] if command else args)
    try:
        options.is_process = is_process
        return run(options)
    except StartupError as error:
        meant = command_meant(args[0]) if isinstance(error, LoadError) and not command else ""
        sentence = f"invoker: {error.detail}" + (f"; or did you mean '{meant}'?" if meant else "")
        print(_as_logged(options.log_format, sentence) if run is _serve else sentence, file=sys.stderr)
        if getattr(options, "debug", False):
            raise
        return error.exit_code
    except KeyboardInterrupt:
        return 130


def _as_asked(args: Sequence[str], sentence: str) -> str:
    """The text of an error in the arguments; a JSON object if the arguments or the environment ask for it."""
    flag = "--log-format"
    given = [two for one, two in itertools.pairwise(args) if one == flag]
    given += [one.partition("=")[2] for one in args if one.startswith(f"{flag}=")]
    asked = given or [os.environ.get("INVOKER_LOG_FORMAT", "")]
    return _as_logged("json" if asked[-1].lower() == "json" else "text", sentence)


def _as_logged(style: str | None, sentence: str) -> str:
    """The text of an error for which the process cannot serve: a JSON object if its log lines would be JSON."""
    from invoker.telemetry.logs import JsonFormatter

    style = style or os.environ.get("INVOKER_LOG_FORMAT", "").lower()
    if style == "text" or (style != "json" and sys.stderr.isatty()):
        return sentence
    return JsonFormatter().format(log.makeRecord(log.name, logging.ERROR, __file__, 0, "%s", (sentence,), None))


def _begin(*, is_process: bool) -> None:
    """Prepare a serving process, before it imports modules and starts threads."""
    folder = os.getcwd()  # noqa: PTH109 - as sys.path has it
    if sys.path[0] in ("", folder) and (why := shadowed(folder)):
        raise LoadError(why)
    if is_process:
        from invoker.server.init import as_init
        from invoker.telemetry.memory import share_arenas

        share_arenas()
        as_init()


def _serve(options: argparse.Namespace) -> int:
    _begin(is_process=options.is_process)
    given = {one.name: getattr(options, one.name) for one in TABLE.settings}
    if (file := TABLE.entry_file(options.entrypoint)) is not None:
        given[file.setting] = options.entrypoint
    config = TABLE.read(os.environ, {name: value for name, value in given.items() if value is not None})
    from invoker.cli.variables import strays
    from invoker.server.stopping import limit_exit
    from invoker.telemetry.logs import set_up

    is_text = set_up(config.log_level, config.log_format)
    if options.is_process:
        from invoker.telemetry.stdout_capture import print_lines

        print_lines(as_objects=not is_text)
    is_worker = "INVOKER_WORKER" in os.environ
    if not is_worker and not options.reload:  # only here, so that each warning is written once
        for stray in strays(os.environ):
            log.warning("%s", stray)
        for refusal in TABLE.refused:
            log.warning("%s", refusal)
    if is_worker:
        from invoker.server.worker import Assignment, work

        try:
            return work(Assignment.taken(), config, lambda config: build(config, options.entrypoint), loop_factory)
        finally:
            if options.is_process:  # otherwise the program that called `main` continues
                limit_exit(config.hook_timeout_s)
    if config.workers > 1:
        from invoker.server.supervisor import supervise

        if options.reload:
            raise ConfigError(
                f"--reload works with one process only, but {config.workers} workers are set; "
                "leave out one of the two, or send SIGHUP when the code has changed"
            )
        return supervise(config, sys.argv[1:])
    if options.reload:
        from invoker.server.reload import serve_with_reload

        return serve_with_reload(options.entrypoint, sys.argv[1:])
    from invoker.server import life
    from invoker.server.reload import taken_drain_s

    server = build(config, options.entrypoint)
    try:
        main = functools.partial(life.run, server, hangup_drain_s=taken_drain_s(config))
        return life.run_to_end(server, main, loop_factory(server))
    finally:
        if options.is_process:
            limit_exit(config.hook_timeout_s)
        logging.shutdown()


def _client_command(command: str) -> tuple[argparse.ArgumentParser, Callable[[argparse.Namespace], int]]:
    verb = next((one for one in TABLE.verbs if one.name == command), None)
    if verb is not None:
        module, about = import_module(verb.module), verb.description
    elif command == "completion":
        module = import_module("invoker.cli.completion")

        about = "Print the script with which a shell completes the commands and flags of invoker."
    else:
        module = import_module("invoker.cli.inspect")

        about = "Show how a function's signature is understood, or precisely what is wrong with it."
    made = Parser(prog=f"invoker {command}", description=about)
    module.add_arguments(made)
    run: Callable[[argparse.Namespace], int] = module.run
    return made, run
