"""``python -m tools COMMAND``: the commands for developers that are not verbs of the Makefile."""

from __future__ import annotations

import sys
from importlib import import_module

from tools.running import run_all, run_one, tasks
from tools.steps import PLANS, ROOT, STEPS

# The modules of this package that are commands.
COMMANDS = {
    "gates": "compare the figures of the tree with recorded ones",
    "faults": "plant recorded faults, and see the tests notice them",
    "deletable": "take each protocol out, and see what breaks",
    "stops": "run tests whose processes stop for a moment now and then, as on a busy machine",
    "rolling": "replace the code of a server that is at work, and count what is lost",
}


def main(arguments: list[str]) -> int:
    """Run a command, and return its exit code."""
    command, *rest = arguments or ("--help",)
    if command in COMMANDS:
        code: int = import_module(f"tools.{command}").main(rest)
        return code
    if command in STEPS:
        return run_one(STEPS[command], rest)
    if command in PLANS and not rest:
        return run_all(tasks(PLANS[command], STEPS), ROOT / "build" / "steps")
    print(_usage(), file=sys.stderr)
    return 0 if command in ("-h", "--help") else 2


def _usage() -> str:
    plans = {name: f"run {', '.join(steps)}" for name, steps in PLANS.items()}
    listed = {**COMMANDS, **{name: step.summary for name, step in STEPS.items()}, **plans}
    lines = [f"  {name:12} {summary}" for name, summary in listed.items()]
    return "\n".join(["usage: python -m tools COMMAND [ARGUMENT...]", "", *lines])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
