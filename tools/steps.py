"""The steps of CI: the commands of each, and the environments that it needs.

``python -m tools STEP`` runs one step, ``python -m tools check`` all that must pass before a change is merged, and
``python -m tools ci`` also the foreign clients and the packages. An environment is named by its stamp, a file that the
Makefile makes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_BIN = Path(sys.executable).parent
_PYTHON = sys.executable

AGENTS, PROTO, SECOND = ".venv-agents/.stamp", ".venv-proto/.stamp", ".venv-second/.stamp"
_CLIENTS = ("action-engine", "graphpipe", "asgi", "openapi", "cloudevents")
FOREIGN = (".interop/.stamp", *(f".interop/{one}/.stamp" for one in _CLIENTS))
SECOND_PYTHON = "3.13"
"""The Python version of the environment `SECOND`, which has the newest protobuf 6; without this Python it uses that of
.venv."""

# These build invoker, which writes metadata into the tree, so they must run one after the other.
ONE_AT_A_TIME = ("dist", AGENTS, SECOND)

_SIDE_BY_SIDE = ("-n", "auto", "--dist", "worksteal")
_MANY = ("--processes", "4")
"""The number of processes for all tests, which are forks of one: see `tests.forkpool`.

Tests wait for most of their time, and two such steps run at a time.
"""

# Tests that need heavy libraries, which few users install.
_AGENT_TESTS = (
    "tests/protocols/toolbridge/service/agents",
    "tests/test_pages.py::test_the_page_works[run-agents]",
    "tests/codecs/anyvalue/test_frames.py",
    "tests/e2e/test_toolbridge_frames.py",
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of CI.

    Attributes:
        summary: The description, for the list of commands.
        commands: The commands, which run one after the other in the root of the tree until one fails.
        defaults: Arguments of the last command, if the user gives none.
        needs: The stamps of the environments that the step needs.
    """

    summary: str
    commands: tuple[tuple[str, ...], ...]
    defaults: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def _tool(name: str, *arguments: str) -> tuple[str, ...]:
    return (str(_BIN / name), *arguments)


def _module(name: str, *arguments: str) -> tuple[str, ...]:
    return (_PYTHON, "-m", name, *arguments)


def _pytest(environment: str) -> tuple[str, ...]:
    return (str(Path(environment).parent / "bin" / "python"), "-m", "pytest", "--quiet")


# The command before the paths of the test files with Hypothesis properties.
_EXPLORE = """INVOKER_TEST_EXPLORE=20 exec "$0" -m pytest "$@" $(grep -rl --include='*.py' '^ *@given' tests)"""
_IN_CONFORMANCE = 'cd conformance && exec "$0" --config setup.cfg --no-logo --cache-dir ../.import_linter_cache'

STEPS = {
    "format": Step("is the code formatted?", (_tool("ruff", "format", "--check", "--quiet", "."),)),
    "lint": Step("lint the code", (_tool("ruff", "check", "--quiet", "."),)),
    "types": Step("check the types", (_tool("mypy"),)),
    "imports": Step(
        "check the dependency rule",
        (
            _tool("lint-imports", "--config", "setup.cfg", "--no-logo"),
            ("sh", "-c", _IN_CONFORMANCE, str(_BIN / "lint-imports")),
        ),
    ),
    "proto": Step("is invoker/_pb what proto/ gives?", ((".ci/proto", "--check"),), needs=(PROTO,)),
    "docs": Step("are the generated pages what the code gives?", (_module("tests.gendocs", "--check"),)),
    "trace": Step("does each MUST of docs/reference have a test?", (_module("tests.trace"),)),
    "tests": Step("run all tests, the slow ones too", (_module("pytest"),), _MANY),
    "second": Step(
        f"run all tests with protobuf 6, on Python {SECOND_PYTHON} if there is one",
        (_pytest(SECOND),),
        _MANY,
        (SECOND,),
    ),
    "agents": Step(
        "run the tests of agents, which need DSPy, and of DataFrames, which need pandas",
        (_pytest(AGENTS),),
        _AGENT_TESTS,
        (AGENTS,),
    ),
    "conformance": Step("judge our own server from outside", (_module("tests.judge"),)),
    "deletable": Step("does anything break without one of the protocols?", (_module("tools", "deletable"),)),
    "explore": Step(
        "look for rare faults: properties with 20 times as many examples, drawn by chance",
        (("sh", "-c", _EXPLORE, _PYTHON),),
        _MANY,
    ),
    "fuzz": Step("throw garbage at a server: --seconds N", (_module("tests.fuzz"),), ("--seconds", "5")),
    "simulate": Step(
        "run random schedules through the pure core: --seeds N", (_module("tests.simulate"),), ("--seeds", "1500")
    ),
    "fuzz-explore": Step(
        "throw other garbage each time, for long", (_module("tests.fuzz", "--explore"),), ("--seconds", "300")
    ),
    "simulate-explore": Step(
        "run other random schedules each time, and many",
        (_module("tests.simulate", "--explore"),),
        ("--seeds", "50000"),
    ),
    "interop": Step("run foreign clients and hosts", (_module("pytest"),), (*_SIDE_BY_SIDE, "tests/interop"), FOREIGN),
    "dist": Step("run a part of the tests from an unpacked source distribution", ((".ci/dist",),)),
    "image": Step("run the steps of deploy/Containerfile in a bare root, without an engine", (_module("tests.image"),)),
    "picture": Step("take the picture of the page for README.md", (_module("tests.picture"),), needs=FOREIGN[:1]),
    "lock": Step("write the lock files anew with the newest releases", ((".ci/lock",),), ("--upgrade",)),
}
STATIC = ("types", "imports", "lint", "format", "docs", "trace", "proto")
CHECK = ("tests", "second", "conformance", "deletable", *STATIC, "fuzz", "simulate", "agents")
CI = ("tests", "second", "interop", "image", "dist", *CHECK)
EXPLORING = ("explore", "fuzz-explore", "simulate-explore")
"""The steps with random choices; CI uses fixed seeds, so that it fails only because of a change."""
NIGHTLY = (*CI, *EXPLORING)
PLANS = {"static": STATIC, "check": CHECK, "ci": CI, "nightly": NIGHTLY}
