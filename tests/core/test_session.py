"""The interface that protocols offer."""

from invoker.core.session import Session
from invoker.protocols.riff.session import RiffSession
from invoker.protocols.web.http import HttpSession


def test_the_protocols_offer_the_interface():
    """Each session has the three methods of `Session`, and none of them waits."""
    wanted = [name for name in vars(Session) if not name.startswith("_")]
    assert sorted(wanted) == ["deliver", "half_close", "receive"]
    for kind in (RiffSession, HttpSession):
        for name in wanted:
            method = getattr(kind, name)
            assert callable(method)
            assert not method.__code__.co_flags & 0x80  # no coroutine
