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
_MANY = ("-n", "3", "--dist", "worksteal")
"""The processes for all tests in CI.

Half of their time the tests wait for servers and clocks, so two cores run three processes at once. Forks of one process
(`tests.forkpool`, for `make test`) would do with less of the processor. They are not used here yet: in three whole runs
each met some test that depends on what ran before it in its process.
"""

# Tests that need heavy libraries, which few users install.
_AGENT_TESTS = (
    "tests/protocols/toolbridge/service/agents",
    "tests/test_pages.py::test_the_page_works[run-agents]",
    "tests/codecs/anyvalue/test_frames.py",
    "tests/e2e/test_toolbridge_frames.py",
)

# Tests of code that makes or reads messages with the protobuf library, or uses their descriptors; and for each protocol
# with messages, some tests over real sockets. All other code only passes such messages on. After that, tests of code
# that inspects functions, which depends on the version of Python.
_SECOND_TESTS = (
    "tests/author",
    "tests/protocols/binding",
    "tests/codecs/anyvalue",
    "tests/codecs/test_checkpoint.py",
    "tests/tensors/test_checkpoint.py",
    "tests/protocols/typed",
    "tests/protocols/*/test_session*.py",
    "tests/protocols/*/test_wire.py",
    "tests/protocols/*/test_reading.py",
    "tests/protocols/federated/test_golden.py",
    "tests/protocols/evergreen/action_engine/test_*.py",
    "tests/server/endpoints/test_reflection.py",
    "tests/server/endpoints/test_health.py",
    "tests/golden",
    "tests/test_proto_drift.py",
    "tests/e2e/test_call.py",
    "tests/e2e/test_evergreen_client.py",
    "tests/e2e/test_tools.py",
    "tests/protocols/federated/service/test_rounds.py",
    "tests/e2e/test_error_detail.py",
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


def _tests(*patterns: str) -> tuple[str, ...]:
    """The files and folders that match; a pattern without a match is passed on, so that pytest refuses it."""
    found = ((path.relative_to(ROOT) for path in sorted(ROOT.glob(one))) for one in patterns)
    return tuple(name for one, paths in zip(patterns, found, strict=True) for name in list(map(str, paths)) or [one])


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
        f"run what protobuf and Python matter to with protobuf 6, on Python {SECOND_PYTHON} if there is one",
        (_pytest(SECOND),),
        (*_SIDE_BY_SIDE, *_tests(*_SECOND_TESTS)),
        (SECOND,),
    ),
    "second-whole": Step("run all tests in the environment of `second`", (_pytest(SECOND),), _MANY, (SECOND,)),
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
CHECK = ("tests", "conformance", "deletable", *STATIC, "fuzz", "simulate", "agents", "second")
CI = ("tests", "interop", "image", "dist", *CHECK)
EXPLORING = ("explore", "fuzz-explore", "simulate-explore")
"""The steps with random choices; CI uses fixed seeds, so that it fails only because of a change."""
NIGHTLY = (*CI[:-1], "second-whole", *EXPLORING)
PLANS = {"static": STATIC, "check": CHECK, "ci": CI, "nightly": NIGHTLY}
