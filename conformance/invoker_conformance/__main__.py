"""Runs the conformance suite by `python -m invoker_conformance`."""

from __future__ import annotations

import sys

from invoker_conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
