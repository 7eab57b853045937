"""What answers mean, of whatever server."""

from __future__ import annotations

import pytest

from invoker.errors import Status
from invoker.protocols.graphpipe.client.answers import metadata_in, tensors_in
from invoker.protocols.graphpipe.client.failure import GraphPipeError
from invoker.protocols.graphpipe.client.links import Reply
from invoker.tensors import (
    LIMIT_BYTES,
    Code,
    IOMetadata,
    MetadataResponse,
    Tensor,
    TensorType,
    write_error_response,
    write_infer_response,
    write_metadata_response,
)
from invoker.tensors import GraphPipeError as Refusal
from tests.protocols.graphpipe.client.peer import outputs, sample

ONE = Tensor(TensorType.UINT8, (2,), memoryview(b"ab"))
ERRORS = write_error_response([Refusal(Code.SHAPE, "first"), Refusal(Code.DATA_LENGTH, "second")])
NOTHING = bytes(write_infer_response([]))
HTML = b"<html>\r\n<head><title>502 Bad Gateway</title></head>\n</html>\n"


def refused(body: bytes, status: int | None = 200, *, wanted: int | None = None, reason: str = "") -> GraphPipeError:
    """The error that an answer to an inference is."""
    with pytest.raises(GraphPipeError) as found:
        tensors_in(Reply(body, status, reason), LIMIT_BYTES, wanted)
    return found.value


def test_outputs_are_views_on_the_answer() -> None:
    """Of HTTP, and of raw sockets."""
    for status in (200, None):
        (one,) = tensors_in(Reply(outputs(ONE), status), LIMIT_BYTES, None)
        assert one == ONE


@pytest.mark.parametrize("status", [200, 400, 500, 503, None])
def test_G085_errors_are_read_whatever_the_status(status: int | None) -> None:
    """The first one counts; the others are there."""
    error = refused(ERRORS, status)
    assert (error.code, error.http_status) == (Code.SHAPE, status)
    assert error.message == "GraphPipe: Bad Shape: first"
    assert [one.code for one in error.errors] == [9, 10]


def test_GT49_errors_beside_status_200_are_errors() -> None:
    """As the specification has it."""
    assert refused(sample("error_response")).code == 3
    assert refused(sample("error_response")).message == "names"


@pytest.mark.parametrize("status", [200, None])
def test_G086_an_answer_without_outputs_says_so(status: int | None) -> None:
    """It has neither outputs nor errors."""
    error = refused(NOTHING, status)
    assert (error.code, error.message) == (Code.BAD_OUTPUT, "the server sent no outputs, and no error")


def test_GT49_an_empty_body_says_so() -> None:
    """Status 200 or not."""
    assert refused(b"").message == "the answer has no bytes"
    assert refused(b"").code == Code.MALFORMED
    error = refused(b"", 503, reason="Service Unavailable")
    assert (error.code, error.message, error.status) == (None, "Service Unavailable", Status.UNAVAILABLE)
    assert refused(b"", 599).message == "no reason is given"


def test_GT49_a_page_of_a_gateway_is_text() -> None:
    """On one line."""
    error = refused(HTML, 502)
    assert (error.code, error.http_status, error.status) == (None, 502, Status.UNAVAILABLE)
    assert error.message == "<html> <head><title>502 Bad Gateway</title></head> </html>"


def test_G020_the_go_server_says_no_in_text() -> None:
    """Status 400 and a line."""
    error = refused(b"Could not init output names: unknown output\n", 400)
    assert (error.code, error.http_status) == (None, 400)
    assert error.message == "Could not init output names: unknown output"


def test_text_that_is_none_is_not_shown() -> None:
    """Control signs never reach a terminal; long texts are cut."""
    assert refused(b"\x1b[2Jevil", 500, reason="Internal Server Error").message == "Internal Server Error"
    assert len(refused(b"x" * 9999, 500).message) == 1000
    assert refused(b"caf\xe9 closed", 500).message == "caf\ufffd closed"


def test_tensors_beside_another_status_are_no_result() -> None:
    """A server that says 500 has failed, whatever it sends."""
    assert refused(outputs(ONE), 500, reason="Internal Server Error").http_status == 500


@pytest.mark.parametrize(("sent", "wanted"), [(1, 2), (3, 2)])
def test_G098_another_number_of_outputs_is_an_error(sent: int, wanted: int) -> None:
    """Else names would stand at wrong arrays."""
    error = refused(outputs(*[ONE] * sent), wanted=wanted)
    assert error.code == Code.BAD_OUTPUT
    assert f"{sent} outputs, and {wanted} were asked for" in error.message


def test_G096_answers_are_read_with_the_same_care() -> None:
    """Cut at any place, or filled with anything, an answer is an error of ours and nothing else."""
    whole = outputs(ONE, ONE)
    for size in range(len(whole)):
        error = refused(whole[:size])
        assert error.code in {Code.MALFORMED, Code.BAD_OUTPUT}
    assert refused(b"\xff" * 100).code == Code.MALFORMED
    with pytest.raises(GraphPipeError) as found:
        tensors_in(Reply(outputs(ONE), 200), 8, None)
    assert found.value.code == Code.TOO_LARGE


METADATA = MetadataResponse("m", "1", "s", "d", (IOMetadata("a", "", (-1, 2), 10),), (IOMetadata("y"),))


@pytest.mark.parametrize("status", [200, None])
@pytest.mark.parametrize(
    "metadata",
    [METADATA, MetadataResponse(), MetadataResponse(version="1"), MetadataResponse(name="m", version="\1\0\0\0")],
)
def test_a_description_is_read(metadata: MetadataResponse, status: int | None) -> None:
    """Whatever it says, it is not taken for errors."""
    assert metadata_in(Reply(write_metadata_response(metadata), status), LIMIT_BYTES) == metadata


@pytest.mark.parametrize("status", [200, 400, None])
def test_a_refused_description_is_an_error(status: int | None) -> None:
    """Errors have the form of those of inferences, whatever the status (G-082)."""
    with pytest.raises(GraphPipeError) as found:
        metadata_in(Reply(ERRORS, status), LIMIT_BYTES)
    assert (found.value.code, found.value.http_status) == (Code.SHAPE, status)


def test_a_description_that_is_none_is_an_error() -> None:
    """Text, tensors with an error's status, garbage."""
    for body, status, code in ((HTML, 502, None), (outputs(ONE), 500, None), (b"\xff" * 50, 200, Code.MALFORMED)):
        with pytest.raises(GraphPipeError) as found:
            metadata_in(Reply(body, status), LIMIT_BYTES)
        assert (found.value.code, found.value.http_status) == (code, status)
    with pytest.raises(GraphPipeError, match="Bad Shape"):
        metadata_in(Reply(ERRORS, 200, is_error=True), LIMIT_BYTES)
