"""``python -m invoker device FUNCTION ...``: runs devices that train local functions in rounds of a federated server.

Exit codes: 0: all devices ended normally. 1: a device with ``--once`` or ``--times`` failed. 2: an argument is wrong.
141: stdout is a pipe whose reader closed it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import inspect
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from invoker.errors.wording import printable
from invoker.protocols.federated.wire.names import API_KEY, POPULATION_KEY

if TYPE_CHECKING:
    from invoker.protocols.federated.client.client import DeviceOptions
    from invoker.protocols.federated.client.messages import Attempt
    from invoker.protocols.federated.verbs.plans import Plans

_SILENCE_S: Final = 3.0
"""After this many seconds without an event a device prints what it waits for."""

_EPILOG = """\
functions:
  A device runs only the functions that are named here, by the names that they are given here: a server whose plan
  names functions.federated:train gets work from a device that was started with functions.federated:train. Nothing that
  a server names is imported. FUNCTION takes a Checkpoint and an iterator of examples, and returns an Update; an
  eligibility plan returns a dict of weights by tasks.

examples:
  invoker device functions.federated:train --server 127.0.0.1:8081 --population iris \\
      --examples functions.federated:examples
  invoker device functions.federated:train functions.federated:eligible --server 127.0.0.1:8081 \\
      --population iris --examples functions.federated:examples --devices 50 --once

exit codes:
  0    interrupted, or all devices have taken part as often as asked
  1    a device was lost; its last line of output says why
  2    an argument is wrong
  141  the reader of the output has gone; the devices stopped
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from invoker.connect.connection import add_tls, count, positive

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("functions", metavar="FUNCTION", nargs="+", help="a function that plans may name, as mymod:fn")
    what = parser.add_argument_group("what the device is")
    what.add_argument("--server", metavar="HOST:PORT", required=True, help="the gRPC port of the server")
    what.add_argument("--population", metavar="NAME", required=True, help="the population in whose rounds to take part")
    what.add_argument(
        "--examples", metavar="ENTRYPOINT", default="",
        help="mymod:fn that returns an iterable of examples; it may take the device's number and how many there are; "
        "default: there are none",
    )  # fmt: skip
    what.add_argument("--devices", metavar="N", type=count, default=1, help="how many devices to run; default 1")
    what.add_argument("--attestation", metavar="TEXT", default="", help="a measurement that the server may want")
    what.add_argument(
        "--api-key", metavar="KEY", default=os.environ.get("INVOKER_DEVICE_API_KEY", ""),
        help="sent to the server; better given as INVOKER_DEVICE_API_KEY, which other users cannot see",
    )  # fmt: skip
    how = parser.add_argument_group("how it takes part")
    often = how.add_mutually_exclusive_group()
    often.add_argument("--once", action="store_true", help="take part once, and leave; the same as --times 1")
    often.add_argument(
        "--times", metavar="N", type=count, default=0, help="how many times to take part; default: until interrupted"
    )
    how.add_argument(
        "--plan-timeout", metavar="SECONDS", type=positive, default=600.0, help="how long a plan may run; default 600"
    )
    how.add_argument(
        "--session-timeout", metavar="SECONDS", type=positive, default=3600.0,
        help="how long one session may take, waiting for a round included; default 3600",
    )  # fmt: skip
    how.add_argument("--cache", metavar="FOLDER", default="", help="keep downloads here; default: in memory")
    how.add_argument("--no-secagg", action="store_true", help="do not offer secure aggregation")
    add_tls(parser)


def run(args: argparse.Namespace) -> int:
    """Run the devices until they are done, and return the exit code."""
    from invoker.connect.connection import complain, target_of, tls_of
    from invoker.connect.failure import UsageError
    from invoker.connect.metadata import metadata_pairs
    from invoker.protocols.federated.verbs.plans import Plans

    sys.path.insert(0, str(Path.cwd()))
    try:
        target, tls = target_of(args.server), tls_of(args)
        examples = _examples(args.examples)
        metadata_pairs({POPULATION_KEY: args.population, API_KEY: args.api_key})
    except (UsageError, ValueError) as error:
        return complain(str(error), 2)
    plans = Plans(args.functions)  # the command line reports its errors
    for hint in plans.hints:
        print(f"invoker: {hint}", file=sys.stderr)
    from invoker.protocols.federated.client.client import DeviceOptions

    options = DeviceOptions(
        api_key=args.api_key,
        tls=tls,
        attestation=args.attestation,
        session_timeout_s=args.session_timeout,
        plan_timeout_s=args.plan_timeout,
        cache=args.cache or None,
        secagg=False if args.no_secagg else None,
    )
    times = 1 if args.once else args.times
    fleet = _Fleet(target, args.population, options, plans, examples, args.devices, times)
    return asyncio.run(fleet.run())


@dataclass(slots=True)
class _Fleet:
    """The devices that one command runs."""

    target: str
    population: str
    options: DeviceOptions
    plans: Plans
    examples: Callable[[int, int], Iterable[Any]]
    devices: int
    times: int
    is_stopping: bool = False
    is_lost: bool = False
    is_unheard: bool = False
    waits: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    async def run(self) -> int:
        """Run all devices concurrently; an interrupt stops them within a second."""
        from invoker.connect.quiet import quieten

        loop = asyncio.get_running_loop()
        quieten(loop)
        with _on_signals(loop, self._stop):
            async with self.plans, asyncio.TaskGroup() as group:
                for number in range(self.devices):
                    group.create_task(self._device(number))
        if self.is_unheard:
            return 141
        return 1 if self.is_lost and self.times else 0

    async def _device(self, number: int) -> None:
        from invoker.protocols.federated.client.client import FederatedClient
        from invoker.protocols.federated.verbs.plans import PlanRunner

        name = f"device {number}" if self.devices > 1 else "device"
        runner = PlanRunner(self.plans, partial(self.examples, number, self.devices), self.options.plan_timeout_s)
        client = FederatedClient(
            self.target,
            self.population,
            options=self.options,
            runner=runner,
            should_abort=lambda: self.is_stopping,
            tell=partial(self._tell, name),
        )
        self._wait(name, None)
        try:
            await client.run(self.times)
        finally:
            self.waits.pop(name).cancel()

    def _stop(self) -> None:
        self.is_stopping = True

    def _tell(self, name: str, event: Any) -> None:
        text = _said(event)
        if getattr(event, "end", "") == "lost" and not _is_late(event):
            self.is_lost = True
        self._print(name, text)
        self._wait(name, event)

    def _wait(self, name: str, event: Any) -> None:
        """Print what a device waits for, if no event has come for `_SILENCE_S`."""
        if name in self.waits:
            self.waits.pop(name).cancel()
        pause_s = event.retry.in_s(time.time()) if hasattr(event, "retry") else 0.0
        text = f"waits: {_awaited(event, self.population)}"
        loop = asyncio.get_running_loop()
        self.waits[name] = loop.call_later(pause_s + _SILENCE_S, self._print, name, text)

    def _print(self, name: str, text: str) -> None:
        try:
            print(f"{name}: {printable(text)}", flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # drop the rest of the buffer
            self.is_unheard = self.is_stopping = True


def _awaited(event: Any, population: str) -> str:
    """A sentence that says what the device waits for."""
    from invoker.protocols.federated.client.messages import Assigned, Report

    if isinstance(event, Assigned):
        return "its function is training"
    if isinstance(event, Report):
        return "the server has not taken its report yet; by secure aggregation it needs the other devices of the round"
    return f"the server has begun no round of '{population}' for it yet, and may need more devices"


def _said(event: Any) -> str:
    """A description of an event for the user."""
    from invoker.connect.failure import CallFailed
    from invoker.errors import InvokerError, Status
    from invoker.errors.wording import describe
    from invoker.protocols.federated.client.messages import Assigned, Attempt, EligibilityAsked, Report

    if isinstance(event, EligibilityAsked):
        return "asked for which tasks it is eligible"
    if isinstance(event, Assigned):
        return f"accepted for {event.task}" + (", by secure aggregation" if event.secagg is not None else "")
    if isinstance(event, Report):
        kind = "trained" if event.status is Status.OK else "failed"
        size = f", {len(event.update)} bytes" if event.update else ""
        return f"{kind} in {event.duration_s:.3f} s{size}"
    if isinstance(event, Attempt):
        return _ended(event)
    if isinstance(event, CallFailed):
        return f"the plan failed: {event.detail}"
    return f"the plan failed: {event if isinstance(event, InvokerError) else describe(event)}"


def _ended(attempt: Attempt) -> str:
    from invoker.errors import Status

    ends = {
        "reported": "reported",
        "failed": "could not train",
        "rejected": "not wanted now",
        "ineligible": "eligible for no task",
        "aborted": "stopped",
    }
    text = ends.get(attempt.end) or f"lost: {attempt.status.name}: {attempt.detail}"
    if attempt.end == "lost" and attempt.detail == "SecAgg aborted":
        text += (
            "; the server ended the secure round: too many devices left, or a vector does not have the expected length"
        )
    if _is_late(attempt):
        # the report came too late, or the round failed
        text = f"not counted: {attempt.detail or 'the round is over'}"
    if attempt.end == "aborted":
        return text
    if attempt.end == "failed" and attempt.status is Status.INTERNAL and attempt.detail.startswith("the update"):
        text += f": {attempt.detail}"
    return f"{text}; may come again in {attempt.retry.in_s(time.time()):.1f} s"


def _is_late(attempt: Attempt) -> bool:
    """Whether the round closed before the device's report, or failed."""
    from invoker.errors import Status

    return attempt.end == "lost" and attempt.status is Status.ABORTED and bool(attempt.task)


def _examples(entrypoint: str) -> Callable[[int, int], Iterable[Any]]:
    """The function that returns the examples of one device.

    Raises:
        UsageError: There is no such function.
    """
    from invoker.connect.failure import UsageError

    if not entrypoint:
        return lambda _number, _devices: ()
    name, _, attribute = entrypoint.partition(":")
    try:
        found = getattr(importlib.import_module(name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"--examples {entrypoint}: {error}; give mymod:fn") from None
    if not callable(found):
        raise UsageError(f"--examples {entrypoint} is {type(found).__name__}, and not a function")
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes = sum(one.kind in kinds for one in inspect.signature(found).parameters.values())
    return lambda number, devices: found(*(number, devices)[:takes])


@contextlib.contextmanager
def _on_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
