"""`invoker.protocols.web.asjson`: the parts of a long value are together what a short one is."""

from __future__ import annotations

import base64
from itertools import islice

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import EncodeError
from invoker.message import Message
from invoker.protocols.web import asjson
from invoker.protocols.web.formats import EVENTS, LINES, MIXED, format_of

TYPES = ("text/plain", "text/plain; charset=utf-8", "application/json", "application/octet-stream", "a/b+json", "")


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asjson, "_PART_BYTES", 3)


@pytest.mark.parametrize("kind", [EVENTS, LINES, MIXED])
@pytest.mark.parametrize("names", [("out",), ("a", 'b"')])
@given(
    payload=st.one_of(
        st.lists(st.sampled_from([b"\r", b"\n", b"x", "ä\u2028".encode(), b"\xff", b'"', b"\\"])).map(b"".join),
        st.recursive(st.none() | st.text(), lambda one: st.lists(one, max_size=3)).map(msgspec.json.encode),
        st.binary(),
    ),
    media_type=st.sampled_from(TYPES),
)
def test_H170_the_parts_are_the_item(kind: str, names: tuple[str, ...], payload: bytes, media_type: str) -> None:
    """Line ends and letters may fall between two of them; what is no JSON is refused before the first one."""
    message = Message(payload, media_type=media_type)
    whole, parted = format_of(kind, names), format_of(kind, names)
    for other in (whole, parted):
        other._delimiter = b"--b"  # type: ignore[attr-defined]  # it is drawn
    index = len(names) - 1
    for _ in range(2):  # it may count them, or remember the first one
        try:
            item = whole.item(index, message)
        except EncodeError:
            with pytest.raises(EncodeError):
                parted.parts(index, message)
            return
        assert b"".join(parted.parts(index, message)) == item


def test_H170_parts_are_made_when_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first ones cost nothing of the others."""
    made: list[bytes] = []

    def encode(data: bytes) -> bytes:
        made.append(data)
        return b"."

    monkeypatch.setattr(base64, "b64encode", encode)
    parts = asjson.json_parts(Message(b"123456789", media_type="image/png"))
    assert list(islice(parts, 2)) == [b'{"contentType":"image/png","base64":"', b"."]
    assert made == [b"123"]
