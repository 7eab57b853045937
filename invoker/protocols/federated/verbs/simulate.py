"""``python -m invoker simulate ROUNDS``: runs the rounds of a file with all their devices, in simulated time.

Exit codes: 0: all rounds have ended. 1: no round took place. 2: an argument is wrong. 130: it was interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoker.protocols.federated.verbs.simulation.chances import Chances, Spread, read_spread

if TYPE_CHECKING:
    from invoker.protocols.federated.verbs.simulation.results import Result
    from invoker.protocols.federated.verbs.simulation.scene import SceneOptions

_EPILOG = """\
times:
  SECONDS, LEAST..MOST, exp:MEAN or lognormal:MEDIAN,SIGMA; all are simulated. Computing takes no simulated time.

examples:
  invoker simulate functions/iris.toml --devices 10000 --dropout 0.1 --examples functions.federated:examples \\
      --metric functions.federated:accuracy
  invoker simulate functions/iris_secagg.toml --devices 200 --dropout 0.1 --rounds 3 --json

exit codes:
  0    all rounds have ended, committed or not
  1    no round took place
  2    an argument is wrong
  130  interrupted; what is known so far was printed
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    from invoker.connect.connection import count

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("file", metavar="ROUNDS", help="the file of rounds that a server would be given")
    what = parser.add_argument_group("who takes part")
    what.add_argument(
        "--devices", metavar="N", type=count, default=1000, help="devices of each population; default 1000"
    )
    what.add_argument(
        "--population", metavar="NAME", action="append", default=[], help="simulate this one; repeatable; default: all"
    )
    what.add_argument("--rounds", metavar="N", type=count, default=0, help="rounds of each task; default: as in ROUNDS")
    what.add_argument(
        "--dropout", metavar="P", type=_part, default=0.0,
        help="the probability that a device leaves, at any point of a conversation; default 0",
    )  # fmt: skip
    what.add_argument("--seed", metavar="N", type=_whole, default=0, help="seed of all random choices; default 0")
    sent = parser.add_argument_group("what devices send")
    sent.add_argument(
        "--examples", metavar="ENTRYPOINT", default="",
        help="mymod:fn that returns a device's examples; it may take the device's number and how many there are",
    )  # fmt: skip
    sent.add_argument(
        "--updates", metavar="ENTRYPOINT", default="",
        help="mymod:fn that returns a device's update, likewise; default: the plan's function if it can be imported, "
        "else the checkpoint itself",
    )  # fmt: skip
    sent.add_argument(
        "--update-bytes", metavar="N", type=count, default=0, help="send updates of this many random bytes"
    )
    when = parser.add_argument_group("how long things take")
    when.add_argument(
        "--latency", metavar="TIMES", type=_spread, default=read_spread("lognormal:0.05,0.5"),
        help="the delay of each frame, in either direction; default lognormal:0.05,0.5",
    )  # fmt: skip
    when.add_argument(
        "--train-s", metavar="TIMES", type=_spread, default=read_spread("lognormal:2,0.5"),
        help="how long a plan takes; default lognormal:2,0.5",
    )  # fmt: skip
    when.add_argument(
        "--every-s", metavar="SECONDS", type=_seconds, default=0.0,
        help="about how often a device checks in, unless its retry window is later; default: so often that a round "
        "fills in half of its time, and each minute at least",
    )  # fmt: skip
    shown = parser.add_argument_group("what is shown")
    shown.add_argument(
        "--metric", metavar="ENTRYPOINT", default="",
        help="mymod:fn that is given the checkpoint of each round that is committed, and returns a number",
    )  # fmt: skip
    shown.add_argument("--json", action="store_true", help="print one JSON document at the end")


def run(args: argparse.Namespace) -> int:
    """Simulate, and return the exit code."""
    from invoker.connect.connection import complain
    from invoker.connect.failure import UsageError
    from invoker.protocols.federated.verbs.simulation.simulated_server import House

    sys.path.insert(0, str(Path.cwd()))
    try:
        options = _options(args)
    except UsageError as error:
        return complain(str(error), 2)
    house = House(args.file, populations=args.population, rounds=args.rounds, seed=args.seed)
    out = sys.stdout
    # The functions' output must not be mixed with the JSON.
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        return _run(house, options, args, out)


def _run(house: Any, options: SceneOptions, args: argparse.Namespace, out: Any) -> int:
    from invoker.protocols.federated.verbs.simulation.clock import SimulatedLoop
    from invoker.protocols.federated.verbs.simulation.scene import Scene
    from invoker.protocols.federated.verbs.simulation.show import Bar, report_json, round_text, totals_text

    bar = Bar(sys.stderr, sum(task.rounds for name in house.names for task in house.tasks(name)))

    def told(result: Result) -> None:
        bar.clear()
        if not args.json:
            print(round_text(result), file=out, flush=True)

    def note(text: str) -> None:
        bar.clear()
        print(text, file=sys.stderr, flush=True)

    scene = Scene(house, options, told=told, note=note, bar=bar)
    began = time.perf_counter()
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        results = runner.run(scene.run())
    bar.clear()
    if args.json:
        print(report_json(_given(args), results.totals, results.rounds, scene.why), file=out, flush=True)
    else:
        print(totals_text(results.totals, results.rounds, time.perf_counter() - began), file=out, flush=True)
    if scene.why != "done":
        note(f"ended early: {scene.why}")
    return {"done": 0, "interrupted": 130}.get(scene.why, 1)


def _options(args: argparse.Namespace) -> SceneOptions:
    """Read the options of the simulation, and load the functions that the arguments name.

    Raises:
        UsageError: A function or file does not exist.
    """
    from invoker.protocols.federated.verbs.simulation.scene import SceneOptions
    from invoker.protocols.federated.verbs.simulation.work import WorkOptions, function_at, numbered

    examples: Callable[[int, int], Any] = lambda _number, _devices: ()  # noqa: E731 - a short default
    work = WorkOptions(
        devices=args.devices,
        examples=numbered(args.examples, "--examples") if args.examples else examples,
        updates=numbered(args.updates, "--updates") if args.updates else None,
        update_bytes=args.update_bytes,
        seed=args.seed,
    )
    return SceneOptions(
        work=work,
        chances=Chances(
            latency=args.latency,
            train_s=args.train_s,
            dropout=args.dropout,
            every_s=args.every_s,
            seed=args.seed,
        ),
        metric=function_at(args.metric, "--metric") if args.metric else None,
    )


def _given(args: argparse.Namespace) -> dict[str, Any]:
    return {"file": args.file, "devices": args.devices, "dropout": args.dropout, "seed": args.seed}


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number; give 0 or more")
    return int(text)


def _part(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a probability; give a number from 0 to 1")
    return value


def _seconds(text: str) -> float:
    spread = _spread(text)
    if spread.kind != "uniform" or spread.first != spread.second or not spread.first:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time; give seconds above 0")
    return spread.first


def _spread(text: str) -> Spread:
    try:
        return read_spread(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
