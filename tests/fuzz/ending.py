"""How a server that was attacked ends."""

from __future__ import annotations

from invoker.testing import TestServer
from tests.conftest import SLOW

GRACE = ("--grace-s", str(2 * SLOW))
"""For what runs when the server is stopped; whatever ends by itself does so in this time."""

_TOLD = 3000


def end(server: TestServer) -> str:
    """Stop a server: with which code and last lines it ended, if it was not with 0, or nothing."""
    if server._process.poll() is None:
        server._process.terminate()
    server._process.wait(20 * SLOW)
    told = server.log()[-_TOLD:]
    code = server.close()
    return f"exit code {code}: {told}" if code else ""
