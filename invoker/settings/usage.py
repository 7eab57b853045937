"""`Parser`: argparse with errors of one line, which suggest the most similar word for a mistyped one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from invoker.errors.wording import nearest


class Parser(argparse.ArgumentParser):
    """A parser that reports a mistake in one line, without the list of all arguments.

    Attributes:
        said: Makes the printed text from a sentence.
    """

    def __init__(self, *, prog: str, description: str = "", **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(prog=prog, description=description, **options)
        self.said: Callable[[str], str] = str

    def parse_args(  # type: ignore[override]  # the invoker never passes a namespace
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> argparse.Namespace:
        """Parse; end the process with exit code 2 if the arguments are wrong."""
        options, extra = self.parse_known_args(args, namespace)
        if extra:
            self.error(self.unknown(extra[0], options))
        return options

    def unknown(self, word: str, options: argparse.Namespace) -> str:
        """The error for an unknown argument, with a suggestion."""
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
    """The error for a second entrypoint, which explains how to serve several functions."""
    return (
        f"'{word}' is a second entrypoint beside '{first}', and a process serves one; write a module that imports both "
        "functions and decorates each (`fn = invoker.function(fn)`), and name that module alone"
    )
