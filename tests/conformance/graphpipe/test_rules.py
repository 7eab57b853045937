"""What holds for every answer, and that nothing else passes."""

from __future__ import annotations

import pytest

from invoker_conformance.graphpipe.build import Field, Number, References, Table, assemble, text
from invoker_conformance.graphpipe.requests import tensor_table
from invoker_conformance.graphpipe.rules import STATUS, check_inferred, told
from invoker_conformance.graphpipe.tensors import floats
from invoker_conformance.http import Answer
from invoker_conformance.scenario import Failure

OCTETS = "application/octet-stream"


def body(*, code: int = 0, message: str = "wrong", has_tensors: bool = False) -> bytes:
    """An InferResponse."""
    fields: dict[int, Field] = {}
    if not code or has_tensors:
        fields[0] = References([tensor_table(floats(1))])
    if code:
        fields[1] = References([Table({0: Number("q", code), 1: text(message)})])
    return bytes(assemble(Table(fields)))


def answer(status: int, raw: bytes, *, media_type: str = OCTETS, length: int | None = None, code: str = "") -> Answer:
    """A response."""
    headers = [("Content-Type", media_type), ("Content-Length", str(len(raw) if length is None else length))]
    headers += [("X-GraphPipe-Error", code)] * bool(code)
    return Answer(status, tuple(headers), raw, "sent")


def test_right_answers_pass() -> None:
    """Tensors, and each code with its status."""
    assert check_inferred(answer(200, body()), is_plain_status=False).tensors == (floats(1),)
    for code, status in STATUS.items():
        for is_plain in (False, True):
            right = answer(200 if is_plain else status, body(code=code), code=str(code))
            assert check_inferred(right, is_plain_status=is_plain).errors == ((code, "wrong"),)


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (answer(200, body(), media_type="text/plain"), "G-002"),
        (answer(200, body(), length=7), "Content-Length"),
        (answer(200, b"not a buffer at all"), "an InferResponse"),
        (answer(400, body()), "the status 200"),
        (answer(200, body(), code="1"), "no X-GraphPipe-Error"),
        (answer(200, body(code=1), code="1"), "the status 400"),
        (answer(400, body(code=1)), "X-GraphPipe-Error: 1"),
        (answer(400, body(code=1), code="2"), "X-GraphPipe-Error: 1"),
        (answer(400, body(code=21), code="21"), "from 1 to 20"),
        (answer(400, body(code=1, has_tensors=True), code="1"), "not both"),
        (answer(400, body(code=1, message="x" * 4097), code="1"), "4096 bytes"),
        (answer(400, body(code=1, message="Traceback (most recent"), code="1"), "without traceback"),
        (answer(400, body(code=1, message="in model.py"), code="1"), "without traceback"),
    ],
)
def test_wrong_answers_are_failures(wrong: Answer, expected: str) -> None:
    """Each says what was expected, and what was sent."""
    with pytest.raises(Failure) as raised:
        check_inferred(wrong, is_plain_status=False)
    assert expected in raised.value.expected
    assert raised.value.met
    assert raised.value.sent == "sent"


def test_an_error_has_the_status_200_if_so_configured() -> None:
    """And no other."""
    with pytest.raises(Failure) as raised:
        check_inferred(answer(400, body(code=1), code="1"), is_plain_status=True)
    assert "the status 200" in raised.value.expected


def test_codes_in_words() -> None:
    """For a report."""
    assert told([3, 13]) == "E3 name count or E13 too large"
