"""Tests of `invoker.protocols.federated.negotiation`."""

from __future__ import annotations

import pytest

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import Terms
from invoker.protocols.federated.messages import Capabilities
from invoker.protocols.federated.negotiation import DeviceSettings, capabilities, options_for, terms_for
from tests.protocols.federated.coordinators import options


def test_what_a_client_offers_is_read() -> None:
    """All of it, and numbers that nobody knows are left out."""
    request = options(
        supported_compression_levels=[3, 77, 0],
        should_ack_checkin=True,
        supports_http_download=True,
        supports_eligibility_eval_http_download=True,
    )
    assert capabilities(request) == Capabilities(
        chunks=True, levels=(3, 0), secagg=True, wants_ack=True, http=True, eligibility_http=True, gzip=True
    )
    assert capabilities(pb.ProtocolOptionsRequest()) == Capabilities()


@pytest.mark.parametrize(("variants", "can"), [([], False), ([0], False), ([1], False), ([1, 2], True)])
def test_F088_only_the_native_variant_counts(variants: list[int], can: bool) -> None:
    """Clients that offer no other take no part in secure aggregation."""
    request = options(secagg=False)
    request.side_channels.secure_aggregation.client_variant.extend(variants)  # type: ignore[arg-type]
    assert capabilities(request).secagg is can


def test_F021_the_level_is_one_that_the_client_offers() -> None:
    """Else nothing is compressed."""
    settings = DeviceSettings(level=2)
    for levels, expected in (((0, 1, 2, 3), 2), ((2,), 2), ((0, 1), 0), ((), 0)):
        assert terms_for(Capabilities(chunks=True, levels=levels), settings).level == expected


def test_F018_both_numbers_are_told() -> None:
    """Zero would mean no chunks."""
    told = options_for(terms_for(Capabilities(chunks=True, levels=(1,)), DeviceSettings(chunk_bytes=8192)))
    assert (told.chunk_size_for_upload, told.max_pending_chunks, told.compression_level) == (8192, 2, 1)
    assert not told.HasField("side_channels")


def test_F020_who_takes_no_chunks_is_told_zeros() -> None:
    """Whatever levels it offers."""
    terms = terms_for(Capabilities(levels=(1, 2)), DeviceSettings())
    assert terms == Terms()
    told = options_for(terms)
    assert (told.chunk_size_for_upload, told.max_pending_chunks, told.compression_level) == (0, 0, 0)


def test_F134_side_channels_come_with_all_the_rest() -> None:
    """Since the message replaces the one before."""
    told = options_for(Terms(8192, 3, 1), secagg=True)
    assert (told.chunk_size_for_upload, told.max_pending_chunks, told.compression_level) == (8192, 3, 1)
    assert told.side_channels.secure_aggregation.client_variant == 2


def test_F039_the_limits_are_those_of_grpc_and_of_memory() -> None:
    """4 MiB for a message that goes whole, 64 MiB for one in chunks (F-034); a chunk is smaller than either."""
    settings = DeviceSettings()
    assert (settings.whole_bytes, settings.message_bytes) == (4 * 2**20, 64 * 2**20)
    assert settings.chunk_bytes * settings.max_pending <= 64 * 2**10
