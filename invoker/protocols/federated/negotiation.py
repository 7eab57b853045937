"""Reads a client's capabilities, and agrees on terms: chunks, compression, secure aggregation."""

from __future__ import annotations

import msgspec

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import UNCOMPRESSED, Terms
from invoker.protocols.federated.messages import Capabilities
from invoker.protocols.federated.wire.names import COMPRESSION_LEVELS, HTTP_GZIP, NATIVE_SECAGG


class DeviceSettings(msgspec.Struct, frozen=True):
    """Limits and choices of the server for each conversation with a device.

    Attributes:
        chunk_bytes: Bytes of the chunks that clients are asked to send, and that they are sent (F-018).
        max_pending: How many chunks may be sent before one of them is acked.
        level: The compression level that is agreed on with clients that offer it (F-021).
        message_bytes: The most bytes of one message, whole or in chunks (F-034).
        whole_bytes: The largest answer that is sent whole, because its client takes no chunks (F-039).
        ignored: Messages without content that a client may send (F-011).
        events: The most entries of ``serialized_train_event`` in a report (F-064).
        event_bytes: The most bytes of these entries.
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
    """The capabilities that a client reports; unknown numbers are left out."""
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
    """Terms for chunks with a client: all zeros if it takes none (F-020)."""
    if not can.chunks:
        return Terms()
    level = settings.level if settings.level in can.levels else UNCOMPRESSED  # F-021
    return Terms(settings.chunk_bytes, settings.max_pending, level)


def options_for(terms: Terms, *, secagg: bool = False) -> pb.ProtocolOptionsResponse:
    """The message with the terms; it has all terms, since each such message replaces the last one (F-018, F-134).

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
