"""`Parser`: argparse with errors of one line, which suggest the nearest word for a mistyped one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from invoker.errors.wording import nearest


class Parser(argparse.ArgumentParser):
    """A parser that answers a mistake with one line instead of a list of everything that could be given.

    Attributes:
        said: Makes the text that is printed from a sentence.
    """

    def __init__(self, *, prog: str, description: str = "", **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(prog=prog, description=description, **options)
        self.said: Callable[[str], str] = str

    def parse_args(  # type: ignore[override]  # the namespace of a caller is nothing that we use
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse; end the process with exit code 2 if the arguments are wrong."""
        options, extra = self.parse_known_args(args, namespace)
        if extra:
            self.error(self.unknown(extra[0], options))
        return options

    def unknown(self, word: str, options: argparse.Namespace) -> str:
        """Say that an argument is unknown, and which one may have been meant."""
        if not word.startswith("-"):
            given = getattr(options, "entrypoint", "")
            return _second(given, word) if given else f"there is one argument too many: '{word}'"
        flag = word.partition("=")[0]
        known = [one for action in self._actions for one in action.option_strings]
        near = nearest(flag, known)
        return f"there is no flag '{flag}'" + (f"; did you mean '{near}'?" if near else "")

    def error(self, message: str) -> NoReturn:
        """Print the error in one line, and end the process."""
        sign = "" if message.endswith("?") else ";"
        print(self.said(f"error: {message}{sign} '{self.prog} --help' says more"), file=sys.stderr)
        sys.exit(2)


def _second(first: str, word: str) -> str:
    """Say how several functions are served, for a command that names more than one entrypoint."""
    return (
        f"'{word}' is a second entrypoint beside '{first}', and a process serves one; write a module that imports both "
        "functions and decorates each (`fn = invoker.function(fn)`), and name that module alone"
    )
