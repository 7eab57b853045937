"""`invoker.doors.http.hyper`: connections that hypercorn serves, and only those."""

from __future__ import annotations

import subprocess
import sys


def test_hypercorn_is_not_there_before_it_is_needed() -> None:
    """It takes a tenth of a second and some MB."""
    program = (
        "import sys, invoker.doors.http.door, invoker.doors.http.socketline\n"
        "print(*(name for name in ('hypercorn', 'h11', 'h2', 'wsproto') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
