"""``python -m invoker conformance``: runs the conformance suite, a separate distribution, if that is installed."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

_PACKAGE = "invoker_conformance"
_MISSING = (
    "invoker: the conformance suite is a distribution of its own; "
    "install it with 'pip install stream-invoker-conformance' and run 'invoker-conformance' with the same arguments"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the suite, if it is installed and can be imported."""
    with suppress(ImportError):  # the suite is of another release; running it reports what is wrong
        if (suite := _suite()) is not None:
            suite.add_arguments(parser)


def run(args: Sequence[str]) -> int:
    """Run the suite and return its exit code; if it is not installed, print what to install and return 2."""
    if (suite := _suite()) is None:
        print(_MISSING, file=sys.stderr)
        return 2
    return int(suite.main(args))


def _suite() -> Any:
    # Imported by name: the suite imports invoker, so invoker must not import the suite statically.
    return importlib.import_module(f"{_PACKAGE}.cli") if find_spec(_PACKAGE) is not None else None
