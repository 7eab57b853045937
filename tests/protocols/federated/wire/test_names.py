"""Names and numbers of the wire: `invoker.protocols.federated.wire.names`."""

from __future__ import annotations

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import LEVELS, UNCOMPRESSED
from invoker.protocols.federated.wire.names import COMPRESSION_LEVELS, SERVICE, SESSION


def test_the_names_are_those_of_the_schema() -> None:
    """The client calls, and the server serves, what the .proto file declares."""
    service = pb.DESCRIPTOR.services_by_name["FederatedTrainingApi"]
    assert service.full_name == SERVICE
    assert [one.name for one in service.methods] == [SESSION]


def test_F021_all_levels_of_compression_are_those_of_chunks() -> None:
    """A level that is offered can be read and written, and there is no other."""
    assert (UNCOMPRESSED, *LEVELS) == COMPRESSION_LEVELS
    assert set(COMPRESSION_LEVELS) == set(pb.CompressionLevel.values())
