"""`python -m tools conformance`: serves the named functions and lets the conformance suite judge them from outside.

``GRPC_DRIVER`` says which transports are judged: ``aio``; ``fast``, which is judged twice, since it serves the calls of
a catalogue with async functions on its loop and those of one without in threads; by default all of them. Each is judged
in riff, Evergreen, the tool bridge and federated compute. GraphPipe, which does not come through these transports, is
judged with both kinds of catalogue, and once more as an operator may configure it. An argument ``--protocol`` chooses
one.

Judging is mostly waiting: one target takes a quarter of a core. So three are judged at a time; what is said of one is
printed in one piece.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from subprocess import PIPE, STDOUT
from typing import TypeAlias

from invoker_conformance.scenario import PROTOCOLS
from tests.conftest import SLOW
from tests.serving import ROOT, serving

Done: TypeAlias = tuple[str, subprocess.CompletedProcess[str]]
Job: TypeAlias = Callable[[], Done]

_AT_A_TIME = 3

_SERVED = {
    "fast": (
        ("riff", "functions.conformance", "fast"),
        ("riff", "tests.sync_catalogue", "fast"),
        ("evergreen", "functions.conformance_evergreen", "fast"),
        ("evergreen", "tests.sync_evergreen", "fast"),
        ("toolbridge", "functions.conformance_toolbridge", "fast"),
        ("toolbridge", "tests.sync_toolbridge", "fast"),
        ("federated", "functions/conformance_federated.toml", "fast"),
    ),
    "aio": (
        ("riff", "functions.conformance", "aio"),
        ("evergreen", "functions.conformance_evergreen", "aio"),
        ("toolbridge", "functions.conformance_toolbridge", "aio"),
        ("federated", "functions/conformance_federated.toml", "aio"),
    ),
}
# What a protocol is served with, and what the suite is told of it.
_SERVED_WITH = {
    "toolbridge": {"INVOKER_PROTOCOLS": "riff,http,toolbridge"},
    "federated": {"INVOKER_FEDERATED_PEER_SESSIONS": "1000"},
}
_FACTS = {"toolbridge": ("--max-message", str(10 << 20))}


# Of Evergreen, what an operator may allow is judged at a target where it is allowed, unless a choice was made.
_ALLOWING = {
    "INVOKER_EVERGREEN_METADATA": "identical",
    "INVOKER_TARGETS": "configured",
    "INVOKER_ACTIONS": "ask=functions.conformance_evergreen:upper",
    "INVOKER_INPUTS": "aka=text",
    "INVOKER_REF_HTTP": "public",
}


_MODELS, _SYNC_MODELS = "functions.conformance_graphpipe", "tests.sync_graphpipe"
_CALLING = "batches,endings,names"  # the chapters in which it matters what functions are like
_LIMIT_BYTES = 8 << 20
# What the chapter `configured` of GraphPipe judges, as the target is told and as the suite is.
_CONFIGURED = {
    "INVOKER_HTTP_ROOT": "graphpipe",
    "INVOKER_GRAPHPIPE_ERRORS": "200",
    "INVOKER_GRAPHPIPE_TIMEOUT_S": f"{SLOW / 2:g}",
    "INVOKER_MAX_INVOCATIONS": "4",
}
_TOLD = ("--graphpipe-root", "--graphpipe-errors", "200", "--graphpipe-timeout-s", f"{SLOW / 2:g}")
_TOLD += ("--max-invocations", "4")


def main(argv: Sequence[str] | None = None) -> int:
    """Give the suite's worst exit code; further arguments are the suite's own."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--protocol", choices=(*PROTOCOLS, "all"), default="all")
    chosen, given = parser.parse_known_args(argv)
    wanted = os.environ.get("GRPC_DRIVER") or "all"
    served = _SERVED["fast"] + _SERVED["aio"] if wanted == "all" else _SERVED[wanted]
    served = tuple(each for each in served if chosen.protocol in (each[0], "all"))
    jobs: list[Job] = [partial(_judge, *each, given) for each in served]
    is_whole = not {"--only", "--chapter", "--list"} & set(given)
    if chosen.protocol in ("evergreen", "all") and is_whole:
        jobs.append(partial(_judge_allowing, served[-1][2], given))
    if chosen.protocol in ("graphpipe", "all"):
        jobs.append(partial(_judge_models, _MODELS, given))
        if is_whole:
            jobs.append(partial(_judge_models, _SYNC_MODELS, ["--chapter", _CALLING, *given]))
            jobs.append(partial(_judge_models, _MODELS, ["--chapter", "configured", *_TOLD, *given], env=_CONFIGURED))
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return max(pool.map(_printed, jobs))


def _printed(job: Job) -> int:
    title, done = job()
    print(f"\n== {title}\n{done.stdout}", end="", flush=True)
    return done.returncode


def _suite(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "invoker_conformance", "--strict", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False, stdout=PIPE, stderr=STDOUT, text=True)


def _judge(protocol: str, entrypoint: str, driver: str, given: list[str], env: Mapping[str, str] | None = None) -> Done:
    # Several targets share the machine: a half-close may settle for longer than a thread of one is kept from running.
    chosen = {**_SERVED_WITH.get(protocol, {}), **(env or {})}
    with serving(entrypoint, "--grpc-driver", driver, "--settle-s", "0.1", env=chosen) as served:
        arguments = ["--target", served.grpc, "--http", served.http, "--timeout", f"{5 * SLOW:g}"]
        done = _suite(*arguments, *_FACTS.get(protocol, ()), "--protocol", protocol, *given)
    return f"{protocol}: {entrypoint} behind --grpc-driver {driver}", done


def _judge_allowing(driver: str, given: list[str]) -> Done:
    with tempfile.TemporaryDirectory() as root:
        chosen = ["--chapter", "configured,references", "--ref-root", root, *given]
        env = {**_ALLOWING, "INVOKER_REF_ROOTS": root}
        return _judge("evergreen", "functions.conformance_evergreen", driver, chosen, env)


def _judge_models(entrypoint: str, given: list[str], *, env: Mapping[str, str] | None = None) -> Done:
    """Judge a catalogue of models over HTTP and bare sockets."""
    with tempfile.TemporaryDirectory() as folder:
        bare, http = f"{folder}/models.sock", f"{folder}/http.sock"
        sockets = {"INVOKER_GRAPHPIPE_TCP": "127.0.0.1:0", "INVOKER_GRAPHPIPE_UNIX": bare, "INVOKER_HTTP_UNIX": http}
        with serving(
            entrypoint, env={"INVOKER_GRAPHPIPE_BYTES": str(_LIMIT_BYTES), **sockets, **(env or {})}
        ) as served:
            tcp = re.search(r"graphpipe=(\S+:\d+)", "".join(served.lines))
            assert tcp is not None, served.lines
            arguments = ["--protocol", "graphpipe", "--http", served.http, "--http-unix", http]
            arguments += ["--graphpipe-tcp", tcp[1], "--graphpipe-unix", bare]
            arguments += ["--graphpipe-bytes", str(_LIMIT_BYTES), "--timeout", f"{5 * SLOW:g}"]
            done = _suite(*arguments, *given)
    return f"graphpipe: {entrypoint}{', configured' if env else ''}", done


if __name__ == "__main__":
    sys.exit(main())
