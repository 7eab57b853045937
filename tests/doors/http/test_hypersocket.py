"""`invoker.doors.http.hypersocket`: the bound of messages, and pings where there is nothing to ping."""

from __future__ import annotations

from io import BytesIO

import pytest
from wsproto.events import BytesMessage, TextMessage

from invoker.doors.http import hypersocket
from invoker.doors.http.hypersocket import bound_messages, keep_pinging


class Excess:
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def test_a_message_up_to_the_bound_is_kept() -> None:
    """In parts, and each message anew."""
    excess = Excess()
    buffer = hypersocket._Bounded(10, excess)
    for _ in range(2):
        buffer.extend(BytesMessage(data=b"01234", message_finished=False))
        buffer.extend(BytesMessage(data=b"56789"))
        assert buffer.to_message()["bytes"] == b"0123456789"
        buffer.clear()
    assert excess.count == 0


@pytest.mark.parametrize("kind", [BytesMessage, TextMessage])
def test_nothing_is_kept_of_a_message_that_is_too_long(kind: type[BytesMessage | TextMessage]) -> None:
    """Nor of any that follows; it is said once."""
    excess = Excess()
    buffer = hypersocket._Bounded(10, excess)
    for _ in range(3):
        buffer.extend(kind(data="x" * 8 if kind is TextMessage else b"x" * 8, message_finished=False))  # type: ignore[arg-type]
    assert excess.count == 1
    assert (buffer.value, buffer.length) == (None, 0)
    assert buffer.to_message() == {"type": "websocket.receive", "bytes": None, "text": None}


async def test_another_server_is_left_alone() -> None:
    """Nothing is replaced and nothing pinged."""

    async def send(message: object) -> None:
        raise AssertionError(message)

    bound_messages(send, 10, Excess())
    bound_messages(BytesIO().write, 10, Excess())
    await keep_pinging(send, 0.0, lambda: False)
