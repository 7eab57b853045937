"""The command line of the conformance suite. Exit codes: 0: passed, 1: failed, 2: the run was not possible."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from invoker.settings.usage import Parser
from invoker_conformance.report import Report
from invoker_conformance.runner import Outcome
from invoker_conformance.runner import run as run_scenarios
from invoker_conformance.scenario import PROTOCOLS, SCENARIOS, Scenario
from invoker_conformance.target import Addresses, ModelFacts, Target, Unreachable, parse_addresses

_FAILED, _UNUSABLE = 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the suite's arguments to a parser."""
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="[NAME=]HOST:PORT",
        help="gRPC address of all functions, or of function NAME; repeatable",
    )
    parser.add_argument(
        "--http",
        action="append",
        default=[],
        metavar="[NAME=]HOST:PORT",
        help="HTTP address of all functions, or of function NAME; repeatable",
    )
    parser.add_argument(
        "--protocol", choices=(*PROTOCOLS, "all"), default="riff", help="judge this protocol (default: riff)"
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="ID,ID",
        help="run only scenarios of these names or ids, or that judge these requirements",
    )
    parser.add_argument("--chapter", default="", metavar="NAME,NAME", help="run only these chapters")
    parser.add_argument("--list", action="store_true", help="list the scenarios and stop")
    parser.add_argument(
        "--strict", action="store_true", help="let options (MAY) and decisions of the catalogue (D) fail the run, too"
    )
    parser.add_argument("--json", metavar="FILE", help="write the report as JSON; - means stdout, instead of the table")
    parser.add_argument(
        "--junit", metavar="FILE", help="write the report as JUnit XML; - means stdout, instead of the table"
    )
    _add_facts(parser)
    _add_model_facts(parser)
    parser.add_argument("--verbose", "-v", action="store_true", help="report each scenario on stderr as it ends")


def _add_facts(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe the target, except its address."""
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=5.0,
        metavar="SECONDS",
        help="how long each single wait may take (default: 5)",
    )
    parser.add_argument(
        "--max-message",
        type=int,
        default=4 * 1024 * 1024,
        metavar="BYTES",
        help="largest message that the target accepts (default: 4194304)",
    )
    parser.add_argument(
        "--ref-root",
        default="",
        metavar="DIR",
        help="a folder that the target reads references from; the suite makes and removes files there",
    )


def _add_model_facts(parser: argparse.ArgumentParser) -> None:
    """Add the options for the GraphPipe chapters, which have the same names as those of the server."""
    models = parser.add_argument_group("GraphPipe, as the target is configured")
    models.add_argument(
        "--graphpipe-tcp", default="", metavar="HOST:PORT", help="address of a bare socket that serves the model mirror"
    )
    models.add_argument(
        "--graphpipe-unix", default="", metavar="PATH", help="a bare Unix socket that serves the model mirror"
    )
    models.add_argument(
        "--http-unix", default="", metavar="PATH", help="a Unix socket that speaks HTTP, as --http does"
    )
    models.add_argument(
        "--graphpipe-bytes",
        type=int,
        default=64 << 20,
        metavar="N",
        help="largest request that the target accepts (default: 67108864)",
    )
    models.add_argument(
        "--graphpipe-timeout-s",
        type=_seconds,
        default=30.0,
        metavar="S",
        help="how long an inference may take (default: 30)",
    )
    models.add_argument(
        "--graphpipe-errors",
        choices=("http", "200"),
        default="http",
        help="the status of errors: their own, or 200 (default: http)",
    )
    models.add_argument(
        "--max-invocations",
        type=int,
        default=0,
        metavar="N",
        help="how many inferences it runs at once (default: not judged)",
    )
    models.add_argument(
        "--graphpipe-root", action="store_true", help="the target also serves the model mirror at / of --http"
    )


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError("must be above 0")
    return seconds


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite as a program, and return its exit code."""
    parser = Parser(prog="invoker-conformance", description="Judge an invoker, in any language, from outside.")
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(args: argparse.Namespace) -> int:
    """Run the selected scenarios, and return the exit code."""
    try:
        scenarios = select(only=args.only, chapters=args.chapter, protocol=args.protocol)
        grpc_at, http_at = parse_addresses(args.target), parse_addresses(args.http)
        parse_addresses([args.graphpipe_tcp] if args.graphpipe_tcp else [])
    except ValueError as error:
        return _unusable(str(error))
    if args.list:
        _list(scenarios)
        return 0
    if not (grpc_at or http_at):
        return _unusable("name a --target HOST:PORT (gRPC) or an --http HOST:PORT that is to be judged")
    if args.protocol == "graphpipe" and not http_at:
        return _unusable("name an --http HOST:PORT that is to be judged")
    try:
        outcomes = asyncio.run(_run(args, grpc_at, http_at, scenarios))
    except Unreachable as error:
        return _unusable(str(error))
    places = [str(grpc_at)] * bool(grpc_at) + [f"http {http_at}"] * bool(http_at)
    if args.protocol in ("graphpipe", "all"):
        places += [place for place in (args.graphpipe_tcp, args.graphpipe_unix, args.http_unix) if place]
    report = Report(
        outcomes,
        target=", ".join(places),
        is_whole=scenarios == select(protocol=args.protocol),
        protocols=PROTOCOLS if args.protocol == "all" else (args.protocol,),
        is_strict=args.strict,
    )
    try:
        _publish(report, args)
    except OSError as error:
        return _unusable(str(error))
    return _FAILED if report.has_failed else 0


def select(*, only: str = "", chapters: str = "", protocol: str = "riff") -> list[Scenario]:
    """The scenarios that a user has selected; ``protocol`` may be ``all``.

    Raises:
        ValueError: An id, a name or a chapter is unknown.
    """
    chosen = [scenario for scenario in SCENARIOS.values() if protocol in {scenario.protocol, "all"}]
    known = {scenario.chapter for scenario in chosen}
    if chapters:
        wanted = [chapter.strip().lower() for chapter in chapters.split(",")]
        if unknown := [chapter for chapter in wanted if chapter not in known]:
            raise ValueError(f"no chapter {unknown[0]!r}; there are {', '.join(sorted(known))}")
        chosen = [scenario for scenario in chosen if scenario.chapter in wanted]
    if only:
        ids = only.split(",")
        for id_ in ids:
            if not any(scenario.answers_to(id_) for scenario in chosen):
                raise ValueError(f"no scenario judges {id_.strip()!r}; --list shows them all")
        chosen = [scenario for scenario in chosen if any(map(scenario.answers_to, ids))]
    return chosen


def _list(scenarios: Sequence[Scenario]) -> None:
    for each in scenarios:
        ids = " ".join((*each.numbers, *each.requirements))
        print(f"{each.chapter:<8} {each.name:<44} {', '.join(each.functions):<24} {ids}")


async def _run(
    args: argparse.Namespace, grpc_at: Addresses, http_at: Addresses, scenarios: Sequence[Scenario]
) -> list[Outcome]:
    models = ModelFacts(
        args.graphpipe_tcp,
        args.graphpipe_unix,
        args.http_unix,
        args.graphpipe_bytes,
        args.graphpipe_timeout_s,
        args.max_invocations,
        is_plain_status=args.graphpipe_errors == "200",
        is_root=args.graphpipe_root,
    )
    target = Target(
        grpc_at, http_at, timeout_s=args.timeout, message_bytes=args.max_message, ref_root=args.ref_root, models=models
    )
    try:
        return await run_scenarios(target, scenarios, each=_tell if args.verbose else None)
    finally:
        await target.close()


def _tell(outcome: Outcome) -> None:
    reason = f" ({outcome.reason})" if outcome.reason else ""
    print(f"{outcome.verdict.value:<12} {outcome.scenario.name} {outcome.seconds:.2f} s{reason}", file=sys.stderr)


def _publish(report: Report, args: argparse.Namespace) -> None:
    for place, render in ((args.json, report.json), (args.junit, report.junit)):
        if place == "-":
            print(render())
        elif place:
            Path(place).write_text(render() + "\n", encoding="utf-8")
    if "-" not in (args.json, args.junit):
        print(report.text())


def _unusable(reason: str) -> int:
    print(f"invoker-conformance: {reason}", file=sys.stderr)
    return _UNUSABLE
