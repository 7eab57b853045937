"""The text of a status."""

from urllib.parse import quote

import pytest

from invoker.transports.grpc.details import DETAIL_BYTES, clip
from tests.conftest import SLOW, cpu_within


@pytest.mark.parametrize("text", ["x" * 20_000, "日" * 20_000, "\n%\x00" * 5000, "a\ud800b" * 3000, "", "short"])
def test_R118_a_status_text_keeps_its_limit_on_a_character_boundary(text):
    """At most 4096 bytes once percent-encoded, and always encodable."""
    clipped = clip(text)
    safe = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
    assert len(quote(clipped, safe=safe)) <= DETAIL_BYTES
    assert clipped.encode().decode() == clipped
    if len(text) < 10:
        assert clipped == text


def test_R118_what_is_cut_says_so():
    """By an ellipsis, within the limit."""
    assert clip("x" * 100, 20) == "x" * 11 + "…"
    assert clip("x" * 20, 20) == "x" * 20


def test_R118_a_text_of_any_length_is_cut_at_once() -> None:
    """Eight million characters would take a second to encode, on the loop."""
    with cpu_within(0.1 * SLOW):
        assert clip("é" * 8_000_000) == "é" * 681 + "…"
