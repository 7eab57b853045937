"""`python -m invoker.conformance`."""

from __future__ import annotations

import sys

from invoker.conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
