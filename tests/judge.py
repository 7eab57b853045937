"""`make conformance`: serves the named functions and lets the conformance suite judge them from outside."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from tests.conftest import SLOW
from tests.serving import ROOT, serving


def main(argv: Sequence[str] | None = None) -> int:
    """Give the suite's exit code; further arguments are the suite's own."""
    given = list(sys.argv[1:] if argv is None else argv)
    with serving("functions.conformance") as served:
        command = [sys.executable, "-m", "invoker.conformance", "--target", served.grpc, "--http", served.http]
        return subprocess.run([*command, "--timeout", f"{5 * SLOW:g}", *given], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
