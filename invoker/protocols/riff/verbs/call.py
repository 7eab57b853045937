"""``python -m invoker call HOST:PORT``: streams values to any riff invoker and prints the results as they come.

Exit codes: 0: the call ended with OK. 1: it ended with an error, or its output could not be written. 2: an argument is
wrong, or a value can be neither sent nor shown on a terminal. 3: there is no connection. 130: Ctrl-C was pressed. 141:
stdout is a pipe whose reader closed it.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import contextlib
import json
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from invoker.errors.wording import printable

if TYPE_CHECKING:
    from invoker.connect.failure import CallFailed
    from invoker.connect.tls import Tls
    from invoker.protocols.riff.client.client import RiffClient
    from invoker.protocols.riff.verbs.plan import Plan

_EPILOG = """\
inputs:
  Input 0 is stdin, one line a value, sent as it arrives; --data replaces it, --no-input leaves it out. A VALUE may be
  @FILE for the lines of a file, or @- for stdin; a value that begins with @ is written @@. Types that are not text are
  read whole, as is everything with --raw. Several inputs are sent at once, as their values become available.

outputs:
  Text is printed a line a value, with the name of the output in front when there are several; other types are written
  unchanged.

names and types:
  A server of this project reports the names and types of inputs and outputs. For others, give them by --inputs,
  --outputs, --content-type and --accept; what is not given is text/plain, and one output of any type.

examples:
  seq 5 | invoker call 127.0.0.1:8081
  invoker call 127.0.0.1:8081 --data hello --data world
  invoker call 127.0.0.1:8081 --arg items=@rows.json --arg k=3
  invoker call 127.0.0.1:8081 --output odd=odd.txt < numbers.txt
  invoker call 127.0.0.1:8081 --data @cat.png --content-type image/png --accept image/png --output small.png
  invoker call 127.0.0.1:8081 --data @words.txt --arg 1=@counts.txt --content-type 1=application/json

exit codes:
  0    the call ended with OK
  1    the call ended with an error, which is on stderr, or its output could not be written
  2    an argument is wrong; what was read cannot be sent; what came back cannot be shown on a terminal
  3    there is no connection
  130  interrupted; the call was cancelled
  141  the reader of the output has gone; the call was cancelled
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from invoker.connect.connection import add_connection, add_tls, positive

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("target", metavar="HOST:PORT", help="where the invoker listens, such as 127.0.0.1:8081")
    _add_inputs(parser.add_argument_group("what is sent"))
    _add_outputs(parser.add_argument_group("what comes back"))
    call = parser.add_argument_group("the call")
    call.add_argument("--function", metavar="NAME", default="", help="which function of a catalogue to call")
    call.add_argument(
        "--timeout", metavar="SECONDS", type=positive, help="end the call after this time; default: never"
    )
    call.add_argument(
        "--max-output-bytes", metavar="N", type=_count, default=64 << 20,
        help="largest value that is accepted from the server; default 67108864",
    )  # fmt: skip
    add_connection(call)
    add_tls(parser)


def run(args: argparse.Namespace) -> int:
    """Make the call and return the exit code."""
    from invoker.connect.connection import ended, target_of, tls_of
    from invoker.connect.failure import UnknownName
    from invoker.protocols.riff.verbs.plan import make_plan

    def command() -> int:
        with contextlib.suppress(UnknownName):  # the server's description may have this name
            make_plan(args)
        asyncio.run(_call(args, target_of(args.target), tls_of(args)))
        sys.stdout.flush()
        return 0

    return ended(command, lambda error: _hint(error, args))


async def _call(args: argparse.Namespace, target: str, tls: Tls | None) -> None:
    from invoker.connect.connection import pairs
    from invoker.connect.failure import CallFailed
    from invoker.connect.quiet import quieten
    from invoker.protocols.riff.client.client import RiffClient
    from invoker.protocols.riff.client.request import Request
    from invoker.protocols.riff.verbs.plan import make_plan

    quieten(asyncio.get_running_loop())
    asking = Request(function=args.function, metadata=dict(pairs("--metadata", args.metadata)))
    client = RiffClient(target, tls=tls, connect_timeout_s=args.connect_timeout, max_output_bytes=args.max_output_bytes)
    async with client:
        known = await client.describe(asking)
        try:
            await _exchange(client, make_plan(args, known), args)
        except CallFailed as error:
            bare = [one.name for one in known.inputs if one.type == "Any"]
            if bare and "TypeError" in error.detail and "str" in error.detail:
                error.add_note(
                    f"'{bare[0]}' has no annotation, so text arrives as a str; annotate it in the function "
                    f"({bare[0]}: float), or send JSON by --json"
                )
            raise


async def _exchange(client: RiffClient, plan: Plan, args: argparse.Namespace) -> None:
    from invoker.connect.sources import frames
    from invoker.protocols.riff.client.printer import Printer

    printer = Printer(
        files=plan.files,
        rest=plan.rest,
        is_several=len(plan.request.accepts()) > 1,
        is_raw=args.raw,
        show_headers=args.show_headers,
    )
    if plan.reads_stdin and sys.stdin is not None and sys.stdin.isatty():
        print("reading values from the terminal, one a line; Ctrl-D ends them", file=sys.stderr)
    names = plan.request.input_names or ()
    silent = set(range(max(len(plan.inputs), len(names))))
    parted = enumerate(zip(plan.inputs, plan.framings, strict=True))
    inputs = [_heard(index, frames(parts, framing), silent) for index, (parts, framing) in parted]
    with printer:
        async for out in client.call(inputs, plan.request):
            printer.write(out)
    for index in sorted(silent):  # the call still ends with OK
        name = f" '{names[index]}'" if index < len(names) else ""
        print(f"note: input {index}{printable(name)} got nothing", file=sys.stderr)


async def _heard(index: int, values: AsyncGenerator[bytes, None], silent: set[int]) -> AsyncGenerator[bytes, None]:
    """Pass on the values of an input, and remove its index from ``silent`` at the first one."""
    async with aclosing(values):
        async for value in values:
            silent.discard(index)
            yield value


def _add_inputs(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--data", "-d", metavar="VALUE", action="append", default=[], help="a value for input 0, or @FILE; repeatable"
    )
    group.add_argument(
        "--arg", "-a", metavar="INPUT=VALUE", action="append", default=[],
        help="a value, or @FILE, for an input by name or by index (from 0); repeatable",
    )  # fmt: skip
    group.add_argument("--no-input", "-n", action="store_true", help="send no value; for functions that only produce")
    group.add_argument(
        "--inputs", metavar="NAME,...", help="names of the inputs, in their order; default: those of the server"
    )
    group.add_argument(
        "--content-type", "-t", metavar="TYPE", action="append", default=[],
        help="media type of the values, or INPUT=TYPE for one input; default: that of the server, else text/plain; "
        "JSON is checked; repeatable",
    )  # fmt: skip
    group.add_argument("--json", action="store_true", help="short for --content-type and --accept application/json")
    group.add_argument(
        "--raw", action="store_true", help="files and stdin are one value each; text is printed unchanged"
    )
    group.add_argument(
        "--chunk",
        metavar="BYTES",
        type=_count,
        default=0,
        help="files and stdin are sent in values of at most this size",
    )
    group.add_argument(
        "--header", "-H", metavar="NAME=VALUE", action="append", default=[], help="a header of every value; repeatable"
    )


def _add_outputs(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--accept", metavar="TYPES", action="append", default=[],
        help="media types that an output may have, best first; once each, or once for all of --outputs; default: text "
        "for a str, else */*",
    )  # fmt: skip
    group.add_argument(
        "--outputs",
        metavar="NAME,...",
        help="names of the outputs, in their order, '' for none; default: those of the server",
    )
    group.add_argument(
        "--output", "-o", metavar="FILE", action="append", default=[],
        help="write to a file, or OUTPUT=FILE for one output by index or name; - is stdout; repeatable",
    )  # fmt: skip
    group.add_argument(
        "--show-headers", "-i", action="store_true", help="media type and headers of each value, on stderr"
    )


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; give a whole number of at least 1")
    return int(text)


def _hint(error: CallFailed, args: argparse.Namespace) -> str:
    """Suggest what to try. The suggestion is for people only, so it may depend on the error's text."""
    from invoker.errors import ProtocolViolation, Status

    if error.detail.startswith(ProtocolViolation.prefix) and "output" in error.detail:
        count = len((args.outputs or "").split(",")) if args.outputs is not None else max(1, len(args.accept))
        return (
            f"{count} output{'s were' if count != 1 else ' was'} asked for; give --accept once for each output of the "
            "function, or name them with --outputs a,b; --outputs '' when it has none"
        )
    if error.status is Status.RESOURCE_EXHAUSTED and "max_output_bytes" in error.detail:
        return "--max-output-bytes N takes larger ones"
    if _is_json_sent_as_text(error.detail):
        return "the value was sent as text; --json sends it as JSON"
    if "'invoker-function'" in error.detail:
        return "--function NAME says which one is meant"
    if error.status is Status.RESOURCE_EXHAUSTED and "larger than max" in error.detail:
        return "a value is larger than the invoker takes; --chunk BYTES sends a file in smaller ones"
    return next(iter(getattr(error, "__notes__", ())), "")


def _is_json_sent_as_text(detail: str) -> bool:
    """Whether the refused text, as far as the error quotes it, is JSON of the object or array that was expected."""
    found = re.search(r"got ('.*'|\".*\")(\.\.\.)?; send JSON as application/json", detail)
    if found is None or found[2]:
        return found is not None
    try:
        json.loads(ast.literal_eval(found[1]))
    except (ValueError, SyntaxError):
        return False
    return True
