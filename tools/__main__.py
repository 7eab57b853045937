"""``python -m tools COMMAND``: `gates` compares figures, `faults` plants faults, `deletable` takes protocols out."""

from __future__ import annotations

import sys
from importlib import import_module

COMMANDS = ("gates", "faults", "deletable")


def main(arguments: list[str]) -> int:
    """Run a command: its exit code."""
    if not arguments or arguments[0] not in COMMANDS:
        print(f"usage: python -m tools {{{','.join(COMMANDS)}}} [--help]", file=sys.stderr)
        return 2
    command = import_module(f"tools.{arguments[0]}")
    code: int = command.main(arguments[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
