"""``python -m invoker chat HOST:PORT``: a conversation in the terminal with an action of any Evergreen server.

Exit codes: 0: the conversation ended normally. 1: an answer or the session failed. 2: an argument is wrong. 3: there is
no connection. 130: Ctrl-C was pressed. 141: stdout is a pipe whose reader closed it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from invoker.connect.tls import Tls
    from invoker.message import Message
    from invoker.protocols.evergreen.client.session import EvergreenSession

EXTENSIONS = ("cancel", "discovery", "partial-failures")

_EPILOG = """\
conversation:
  Each line is a turn, and its answer is printed as it comes. With each turn the action gets all earlier questions and
  answers, which are not sent again: they are nodes of the session. /quit or Ctrl-D ends. Ctrl-C cancels the answer that
  is being given, and the conversation goes on without that turn; where the server cannot cancel one answer, and where
  no answer is being given, it ends the conversation. A turn that fails is left out of the conversation, too.

  stdin may be a file or a pipe: then no prompt is shown, and each answer is given before the next line is read.

examples:
  invoker chat 127.0.0.1:8081 --action generate
  invoker chat 127.0.0.1:8081 --action generate --system 'Be brief.' --config '{"temperature": 0.2}'
  invoker chat 127.0.0.1:8081 --action describe --file cat.png
  printf 'Hello\\nAnd now?\\n' | invoker chat 127.0.0.1:8081 --action generate

exit codes:
  0    the conversation ended as it should
  1    an answer or the session failed; stderr has the error
  2    an argument is wrong
  3    there is no connection
  130  interrupted while no answer was being given, or where the server cannot cancel one
  141  the reader of the output has gone; the session was cancelled
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from invoker.connect.connection import add_connection, add_tls

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("target", metavar="HOST:PORT", help="where the server listens, such as 127.0.0.1:8081")
    talk = parser.add_argument_group("the conversation")
    talk.add_argument(
        "--action", metavar="NAME", default="", help="which action answers; default: the only one that the server lists"
    )
    talk.add_argument(
        "--input", metavar="NAME", default="",
        help="its input that takes the conversation; default: the first one, if the server lists it, else prompt",
    )  # fmt: skip
    talk.add_argument(
        "--output", metavar="NAME", default="",
        help="its output that gives the answer; default: the first one, if the server lists it, else response",
    )  # fmt: skip
    talk.add_argument("--system", metavar="TEXT", default="", help="system message, sent before the first turn")
    talk.add_argument("--config", metavar="JSON", default="", help="an object, sent with each turn as a Struct")
    talk.add_argument(
        "--file", metavar="PATH", action="append", default=[], help="shown with the first turn; repeatable"
    )
    add_connection(parser.add_argument_group("the session"))
    add_tls(parser)


def run(args: argparse.Namespace) -> int:
    """Hold the conversation and return the exit code."""
    from invoker.connect.connection import ended

    return ended(lambda: asyncio.run(_chat(_make_plan(args))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    target: str
    action: str
    input: str
    output: str
    system: str
    connect_timeout_s: float
    config: dict[str, Any] = field(default_factory=dict)
    files: list[Message[bytes]] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)
    tls: Tls | None = None


def _make_plan(args: argparse.Namespace) -> _Plan:
    from invoker.connect.connection import pairs, target_of, tls_of
    from invoker.connect.failure import UsageError
    from invoker.connect.metadata import metadata_pairs
    from invoker.protocols.evergreen.client.attachments import attachment

    metadata = dict(pairs("--metadata", args.metadata))
    try:
        config = json.loads(args.config or "{}")
        tls = tls_of(args)
        metadata_pairs(metadata)
    except json.JSONDecodeError as error:
        raise UsageError(f"--config is not JSON: {error}") from None
    except ValueError as error:
        raise UsageError(str(error)) from None
    if not isinstance(config, dict):
        raise UsageError(f"--config {args.config}: give a JSON object, such as '{{\"temperature\": 0.2}}'")
    try:
        files = [attachment(path, role="user") for path in args.file]
    except OSError as error:
        raise UsageError(f"--file: cannot read {error.filename}: {error.strerror}") from None
    return _Plan(
        target=target_of(args.target),
        action=args.action,
        input=args.input,
        output=args.output,
        system=args.system,
        connect_timeout_s=args.connect_timeout,
        config=config,
        files=files,
        metadata=metadata,
        tls=tls,
    )


async def _chat(plan: _Plan) -> int:
    from invoker.connect.quiet import quieten
    from invoker.protocols.evergreen.client.session import EvergreenSession
    from invoker.protocols.evergreen.client.talk import Talk
    from invoker.protocols.evergreen.client.terminal import Terminal, lines

    loop = asyncio.get_running_loop()
    quieten(loop)
    session = EvergreenSession(
        plan.target,
        extensions=EXTENSIONS,
        tls=plan.tls,
        metadata=plan.metadata,
        connect_timeout_s=plan.connect_timeout_s,
    )
    async with session:
        action, input_, output = await _names(session, plan)
        talk = Talk(session, action, input_=input_, output=output, config=plan.config, system=plan.system)
        for message in plan.files:
            talk.attach(message)
        terminal = Terminal(session, talk)
        with _on_interrupt(loop, terminal.interrupt):
            async with contextlib.aclosing(lines()) as typed:
                await terminal.hold(typed)
    if terminal.is_interrupted:
        return 130
    return 1 if terminal.has_failed else 0


async def _names(session: EvergreenSession, plan: _Plan) -> tuple[str, str, str]:
    """The names of the action, its input and its output: from the arguments, the server's list, or defaults."""
    from invoker.connect.failure import UsageError

    if plan.action and plan.input and plan.output:
        return plan.action, plan.input, plan.output
    offered = {one["name"]: one for one in await session.actions()} if "discovery" in session.extensions else {}
    action = plan.action or (next(iter(offered)) if len(offered) == 1 else "")
    there = f"{plan.target} offers {', '.join(sorted(offered))}" if offered else "the server does not list its actions"
    if not action:
        raise UsageError(f"give --action NAME; {there}")
    if offered and action not in offered:
        raise UsageError(f"there is no action {action!r}; {there}")
    spec = offered.get(action, {})
    first = {kind: next((one["name"] for one in spec.get(kind, ())), "") for kind in ("inputs", "outputs")}
    return action, plan.input or first["inputs"] or "prompt", plan.output or first["outputs"] or "response"


@contextlib.contextmanager
def _on_interrupt(loop: asyncio.AbstractEventLoop, interrupt: Callable[[], None]) -> Iterator[None]:
    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
