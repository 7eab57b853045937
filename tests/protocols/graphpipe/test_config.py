"""`invoker.protocols.graphpipe.config`: what a request says beside its tensors."""

from __future__ import annotations

import pytest

from invoker.context import Context
from invoker.protocols.graphpipe.config import RequestConfig
from invoker.protocols.graphpipe.errors import ConfigRefused
from invoker.tensors import Code


def test_G031_config_is_bytes_text_and_json() -> None:
    """By what the function asks for."""
    ctx = Context(configs=(RequestConfig(b'{"k": [1]}'),))
    assert ctx.config(bytes) == b'{"k": [1]}'
    assert ctx.config(str) == '{"k": [1]}'
    assert ctx.config(dict) == {"k": [1]}
    assert ctx.config(int) is None


def test_G031_GT45_config_may_be_anything() -> None:
    """Zeros, and what is no text."""
    assert Context(configs=(RequestConfig(b"\0\xff"),)).config(bytes) == b"\0\xff"
    assert Context(configs=(RequestConfig(b"\0\xff"),)).config(str) is None
    assert Context().config(bytes) is None


@pytest.mark.parametrize("value", [b"{", b"[1]", b"\xff", b'{"k": "\xff"}', b'{"\xff": 1}', b"{" * 100_000])
def test_G031_bad_json_is_E17(value: bytes) -> None:
    """When it is asked for, also if a text in it is no UTF-8; it is a ValueError, as other protocols' configs raise."""
    with pytest.raises(ConfigRefused, match="not a JSON object") as caught:
        Context(configs=(RequestConfig(value),)).config(dict)
    assert caught.value.code is Code.CONFIG
    assert isinstance(caught.value, ValueError)


def test_G106_its_content_is_not_shown() -> None:
    """It may hold secrets."""
    assert repr(RequestConfig(b"secret")) == "Config(6 bytes)"
