"""The bytes of riff's frames: `invoker.protocols.riff.wire`."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.message import Message
from invoker.protocols.riff.wire import INVOKE, SERVICE, output_signal, output_tail, output_with_headers

TYPES = st.sampled_from(["", "text/plain", "application/json", "x/" + "y" * 200])


@given(st.binary(max_size=300), TYPES, st.integers(0, 2**31 - 1))
@example(b"", "", 0)
@example(b"x" * 125, "a/b", 0)
def test_an_output_is_written_as_protobuf_writes_it(payload: bytes, media_type: str, index: int) -> None:
    """Byte for byte, with and without headers; bytes without a media type are octets."""
    frame = pb.OutputFrame(payload=payload, contentType=media_type or "application/octet-stream", resultIndex=index)
    written = output_signal(payload, output_tail(media_type, index))
    assert written == pb.OutputSignal(data=frame).SerializeToString(deterministic=True)
    frame.headers["x-a"] = "1"
    message = Message(payload, {"x-a": "1"}, media_type)
    assert output_with_headers(message, index) == pb.OutputSignal(data=frame).SerializeToString(deterministic=True)


def test_R007_the_names_are_those_of_the_schema() -> None:
    """The client calls, and the server serves, what the .proto file declares."""
    service = pb.DESCRIPTOR.services_by_name["Riff"]
    assert (service.full_name, [one.name for one in service.methods]) == (SERVICE, [INVOKE])
