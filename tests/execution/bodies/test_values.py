"""Arguments and results of nested calls are encoded, and come back as they were."""

from __future__ import annotations

from typing import Any

import pytest

from invoker.execution.bodies.values import OUTPUT, decode_value, encode_value
from invoker.message import Headers, Message, Output


@pytest.mark.parametrize("value", [None, True, 5, 2**63, 1.5, "text", b"bytes", [1, [2]], {"a": b"x"}, {1: 2}])
def test_a_value_comes_back(value: Any) -> None:
    back = decode_value(encode_value(value))
    assert back == value
    assert type(back) is type(value)


def test_bytes_with_a_media_type_stay_as_they_are() -> None:
    message = Message(b"...", Headers(a="b"), "image/png")
    assert encode_value(message) is message


def test_headers_of_a_message_are_kept() -> None:
    made = encode_value(Message({"a": 1}, Headers(b="c")))
    assert made.headers == {"b": "c"}
    assert decode_value(made) == {"a": 1}


def test_a_value_of_one_of_several_outputs_says_which() -> None:
    made = encode_value(5)
    assert decode_value(Message(made.payload, Headers({OUTPUT: "odd"}), made.media_type)) == Output("odd", 5)
