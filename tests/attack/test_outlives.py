"""`tests.attack.outlives`: no kind of call leaves behind what it carried, though Python's collector never runs."""

from __future__ import annotations

import pytest

from tests.attack.callers import ENDS
from tests.attack.outlives import ARGS, attack
from tests.attack.runner import IS_LONG, probed, victim

pytestmark = pytest.mark.timeout(180)

_SYNC = ("tests.attack.outliving_sync", *ARGS[1:])
_ON_GRPC = ("riff", "typed", "evergreen", "ExecuteTool", "StreamTool")
_SETUPS = {
    "all functions": (ARGS, (), () if IS_LONG else ("aechoes",)),
    "aio driver": ((*ARGS, "--grpc-driver", "aio"), _ON_GRPC, () if IS_LONG else ("echo",)),
    "sync functions": (_SYNC, (), ("echo", "echoes", "tensor") if IS_LONG else ("echo",)),
}


_FEW = {"all functions": ("taken back", "unread"), "aio driver": ("well",), "sync functions": ("well", "unread")}
_CHOSEN = [(setup, end) for setup in _SETUPS for end in (ENDS if IS_LONG else _FEW[setup])]


@pytest.mark.parametrize(("setup", "end"), _CHOSEN)
def test_as_many_calls_again_hold_nothing_more(setup: str, end: str) -> None:
    """Each wire, sync, async and isolated: 8 MiB of requests and 32 MiB of responses are freed when all is read."""
    args, wires, functions = _SETUPS[setup]
    with victim(*args) as target:
        account = probed(attack(end, wires, functions), target, 1)
    assert account.figures["kept"] == "", account.figures
    assert account.failures == 0
