"""`invoker.protocols.federated.fields`: messages that would be far larger in memory than on the wire."""

from __future__ import annotations

import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.errors import InvocationError
from invoker.protocols.federated.fields import has_more_fields
from invoker.protocols.federated.reading import parsed
from tests.conftest import SLOW, cpu_within

TYPE = pb.ClientStreamMessage.DESCRIPTOR
MANY = 2_000_000


def field(number: int, content: bytes) -> bytes:
    """A field of bytes, as it is serialized."""
    size, octets = len(content), bytearray()
    while size > 0x7F:
        octets.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([number << 3 | 2, *octets, size]) + content


HOLLOW = {
    "events of a report": field(2, field(3, b"\x22\0" * MANY)),
    "events of the side channel": b"\x2a\0" * MANY,
    "shares": field(4, field(3, b"\x0a\0" * MANY)),
    "entries of an unmasking": field(4, field(5, b"\x0a\0" * MANY)),
    "compression levels": field(1, field(5, field(2, bytes(MANY)))),
    "weights": field(1, field(7, b"\x12\0" * MANY)),
    "unknown numbers": b"\xf8\x07\0" * MANY,
    "behind another message": field(2, b"") + field(2, field(3, b"\x22\0" * MANY)),
}


@pytest.mark.parametrize("name", HOLLOW)
def test_a_hollow_message_is_refused_before_it_is_parsed(name: str) -> None:
    """Each would be a hundred megabytes of objects, or a loop of a million steps."""
    assert has_more_fields(HOLLOW[name], TYPE, 65_536)
    with cpu_within(0.1 * SLOW):
        with pytest.raises(InvocationError, match="more than 65536 fields") as caught:
            parsed(HOLLOW[name])
        assert caught.value.status.name == "INVALID_ARGUMENT"


@pytest.mark.parametrize("frame", [bytes, bytearray])
def test_large_messages_of_devices_are_taken(frame: type[bytes]) -> None:
    """An update of megabytes, whatever its bytes look like, and the shares of a thousand devices."""
    report = pb.ClientStreamMessage()
    report.report_request.report.update_checkpoint = b"\x22\0" * MANY
    assert parsed(frame(report.SerializeToString())) == report
    shares = pb.ClientStreamMessage()
    entries = shares.secure_aggregation_client_message.unmasking_response.noise_or_prf_key_shares
    for _ in range(10_000):
        entries.add(prf_sk_share=bytes(36))
    assert parsed(frame(shares.SerializeToString())) == shares


@pytest.mark.parametrize(
    "end", [b"\x80", b"\x0a", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x0b" * 10, b"\x0f"]
)
def test_what_is_malformed_is_left_to_the_parser(end: bytes) -> None:
    """It may be cut off anywhere, and have kinds that nobody knows."""
    frame = field(2, bytes(70_000)) + end
    assert not has_more_fields(frame, TYPE, 200_000)
    with pytest.raises(InvocationError, match="not a valid ClientStreamMessage"):
        parsed(frame)


def test_small_messages_are_not_searched() -> None:
    """They cannot have so many that it matters."""
    assert not has_more_fields(b"\x2a\0" * 32_768, TYPE, 10)
    assert has_more_fields(b"\x2a\0" * 32_769, TYPE, 10)
