"""`invoker.transports.http.hyper`: connections that hypercorn serves, and only those."""

from __future__ import annotations

import subprocess
import sys

from tests.transports.http.test_transport import PREFACE, echo
from tests.transports.served import Served, until


def test_hypercorn_is_not_there_before_it_is_needed() -> None:
    """It takes a tenth of a second and some MB."""
    program = (
        "import sys, invoker.transports.http.transport, invoker.transports.http.socketconnection\n"
        "print(*(name for name in ('hypercorn', 'h11', 'h2', 'wsproto') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


async def test_H212_a_connection_is_new_until_its_first_request() -> None:
    """It is spared where descriptors are short."""
    async with Served.at(echo) as served, served.wire() as wire:
        idle = served.transport.connections.idle
        await wire.send(PREFACE)
        await until(lambda: "HyperConnection" in [type(one).__name__ for one in idle])
        assert None not in idle.values()
