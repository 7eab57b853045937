"""Rules that hold for every frame and every status."""

from __future__ import annotations

import grpc
import pytest

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker_conformance.riff.rules import check_detail, check_frame

UNKNOWN = grpc.StatusCode.UNKNOWN


@pytest.mark.parametrize("media_type", ["", "*/*", "text/*", "json", "text/plain;q=0.5", "text/plain; q=1", "a/b/c"])
def test_R098_R137_a_content_type_that_is_not_concrete_breaks_a_rule(media_type: str) -> None:
    """Empty, wildcard, malformed and q are found."""
    assert check_frame(pb.OutputFrame(contentType=media_type), 1) is not None


@pytest.mark.parametrize("media_type", ["text/plain", "text/plain; charset=utf-16", "application/a.b+json"])
def test_a_concrete_content_type_breaks_none(media_type: str) -> None:
    """Parameters other than q are fine."""
    assert check_frame(pb.OutputFrame(contentType=media_type), 1) is None


@pytest.mark.parametrize(("index", "outputs"), [(1, 1), (-1, 1), (2, 2), (0, None)])
def test_R136_an_index_beyond_the_outputs_breaks_a_rule(index: int, outputs: int | None) -> None:
    """So does any frame before a StartFrame was sent."""
    assert check_frame(pb.OutputFrame(contentType="a/b", resultIndex=index), outputs) is not None


@pytest.mark.parametrize(
    "detail",
    [
        "Unexpected <class 'ValueError'>: boom",
        "boom",
        "Invoker: Unexpected Error: Traceback (most recent call last)",
        "Invoker: Unexpected Error: in /srv/module.py line 3",
        "Invoker: Unexpected Error: " + "x" * 5000,
        "Invoker: Unexpected Error: " + "日" * 500,
        "Invoker: Unexpected Error: " + "%" * 1400,
    ],
)
def test_R117_R118_a_detail_that_leaks_or_is_too_long_breaks_a_rule(detail: str) -> None:
    """Length counts as it is encoded on the wire."""
    assert check_detail(UNKNOWN, detail) is not None


def test_a_detail_that_says_what_was_met_breaks_no_rule() -> None:
    """With spaces."""
    assert check_detail(UNKNOWN, "Invoker: Protocol Violation: a sentence with spaces") is None
