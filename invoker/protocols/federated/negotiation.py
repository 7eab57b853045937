"""Reads a client's capabilities, and chooses the terms for chunks, compression and secure aggregation."""

from __future__ import annotations

import msgspec

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import UNCOMPRESSED, Terms
from invoker.protocols.federated.messages import Capabilities
from invoker.protocols.federated.wire.names import COMPRESSION_LEVELS, HTTP_GZIP, NATIVE_SECAGG


class DeviceSettings(msgspec.Struct, frozen=True):
    """The limits and choices of the server for each conversation with a device.

    Attributes:
        chunk_bytes: The size of chunks in both directions, in bytes (F-018).
        max_pending: How many chunks may be sent without an ack.
        level: The compression level for clients that offer it (F-021).
        message_bytes: The largest message in bytes, whole or in chunks (F-034).
        whole_bytes: The largest answer in bytes for a client that does not accept chunks (F-039).
        ignored: How many messages without content a client may send (F-011).
        events: How many entries ``serialized_train_event`` may have in a report (F-064).
        event_bytes: How many bytes these entries may have together.
    """

    chunk_bytes: int = 32 * 1024
    max_pending: int = 2
    level: int = 1
    message_bytes: int = 64 * 1024 * 1024
    whole_bytes: int = 4 * 1024 * 1024
    ignored: int = 1000
    events: int = 100
    event_bytes: int = 1024 * 1024


def capabilities(request: pb.ProtocolOptionsRequest) -> Capabilities:
    """The capabilities of a client; unknown numbers are left out."""
    offered = dict.fromkeys(request.supported_compression_levels)
    variants = request.side_channels.secure_aggregation.client_variant
    return Capabilities(
        chunks=request.supports_chunked_blob_transfer,
        levels=tuple(level for level in offered if level in COMPRESSION_LEVELS),
        secagg=NATIVE_SECAGG in variants,
        wants_ack=request.should_ack_checkin,
        http=request.supports_http_download,
        eligibility_http=request.supports_eligibility_eval_http_download,
        gzip=HTTP_GZIP in request.supported_http_compression_formats,
    )


def terms_for(can: Capabilities, settings: DeviceSettings) -> Terms:
    """The terms for chunks; all zeros for a client that does not accept chunks (F-020)."""
    if not can.chunks:
        return Terms()
    level = settings.level if settings.level in can.levels else UNCOMPRESSED  # F-021
    return Terms(settings.chunk_bytes, settings.max_pending, level)


def options_for(terms: Terms, *, secagg: bool = False) -> pb.ProtocolOptionsResponse:
    """The message with all terms; each such message replaces the previous one (F-018, F-134).

    Args:
        terms: The terms for chunks.
        secagg: Whether the client takes part in secure aggregation (F-089).
    """
    options = pb.ProtocolOptionsResponse(
        chunk_size_for_upload=terms.chunk_bytes,
        max_pending_chunks=terms.max_pending,
        compression_level=pb.CompressionLevel.Name(terms.level),
    )
    if secagg:
        options.side_channels.secure_aggregation.client_variant = NATIVE_SECAGG
    return options
