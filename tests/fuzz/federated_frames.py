"""What devices send that mean no good: right messages at the wrong time, broken chunks, bombs, bytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from invoker._pb.federated import federated_api_pb2 as pb

_SIZES = (-1, 0, 1, 2, 9, 40, 1000, 70_000, 2**26, 2**26 + 1, 2**31 - 1)
_CONTENTS = (
    "abort", "advertise_keys", "share_keys_response", "masked_input_response", "unmasking_response",
)  # fmt: skip


def frames(chance: Random, population: str, phase: Callable[[], str]) -> Iterator[bytes]:
    """Frames without end; ``phase`` gives the round that the device is in, once it is in one."""
    while True:
        message = chance.choice(_MAKERS)(chance, population, phase())
        data: bytes = message.SerializeToString()
        way = chance.randrange(10)
        if way == 0 and data:
            at = chance.randrange(len(data))
            data = data[:at] + chance.randbytes(1) + data[at + 1 :]
        elif way == 1:
            data = data[: chance.randrange(len(data) + 1)]
        elif way == 2:
            data = chance.randbytes(chance.randrange(100))
        if chance.random() < 0.3:
            yield from _cut(chance, data)
        else:
            yield data


def _options(chance: Random) -> pb.ProtocolOptionsRequest:
    options = pb.ProtocolOptionsRequest(
        supports_chunked_blob_transfer=chance.random() < 0.8,
        should_ack_checkin=chance.choice((True, False)),
        supports_http_download=chance.choice((True, False)),
        supports_eligibility_eval_http_download=chance.choice((True, False)),
    )
    options.supported_compression_levels.extend(chance.sample(range(4), chance.randrange(5)))  # type: ignore[arg-type]
    if chance.choice((True, False)):
        options.side_channels.secure_aggregation.client_variant.append(2)  # type: ignore[arg-type]
    return options


def _checkin(chance: Random, population: str, _phase: str) -> pb.ClientStreamMessage:
    name = chance.choice((population, population, population, "", "nowhere", "x" * 5000))
    request = pb.CheckinRequest(population_name=name, protocol_options_request=_options(chance))
    if chance.random() < 0.3:
        request.task_eligibility_info.version = chance.choice((1, 1, 1, 0, 2, -1))
        for _ in range(chance.randrange(3)):
            weight = chance.choice((1.0, 3.5, 0.0, -1.0, float("nan"), float("inf")))
            request.task_eligibility_info.task_weights.add(task_name=chance.choice(("train", "x")), weight=weight)
    request.retry_token = chance.choice(("", "", "A" * 44, "x" * 9999))
    return pb.ClientStreamMessage(checkin_request=request)


def _eligibility(chance: Random, population: str, _phase: str) -> pb.ClientStreamMessage:
    request = pb.EligibilityEvalCheckinRequest(population_name=population, protocol_options_request=_options(chance))
    return pb.ClientStreamMessage(eligibility_eval_checkin_request=request)


def _report(chance: Random, population: str, phase: str) -> pb.ClientStreamMessage:
    report = pb.Report(
        update_checkpoint=chance.choice((b"1", b"", b"no number", bytes(100_000))),
        status_code=chance.choice((0, 0, 13, -1, 99)),
    )
    for _ in range(chance.choice((0, 0, 1, 101))):
        report.serialized_train_event.add(
            type_url="x/google.internal.federatedml.v2.ClientExecutionStats", value=chance.randbytes(4)
        )
    round_id = chance.choice((phase, phase, "another"))
    request = pb.ReportRequest(population_name=population, execution_phase_id=round_id, report=report)
    message = pb.ClientStreamMessage(report_request=request)
    if chance.random() < 0.3:
        message.secure_aggregation_client_message.CopyFrom(
            _secure(chance, population, phase).secure_aggregation_client_message
        )
    return message


def _secure(chance: Random, _population: str, _phase: str) -> pb.ClientStreamMessage:
    message = pb.ClientStreamMessage()
    secure = message.secure_aggregation_client_message
    part: Any = getattr(secure, chance.choice(_CONTENTS))
    part.SetInParent()
    if secure.HasField("advertise_keys"):
        length = chance.choice((0, 32, 33, 33, 65))
        secure.advertise_keys.pair_of_public_keys.noise_pk = b"\2" + chance.randbytes(length)
        secure.advertise_keys.pair_of_public_keys.enc_pk = b"\3" + chance.randbytes(length)
    elif secure.HasField("share_keys_response"):
        part.encrypted_key_shares.extend(chance.randbytes(chance.choice((0, 104))) for _ in range(chance.randrange(5)))
    elif secure.HasField("masked_input_response"):
        part.vectors["w"].encoded_vector = chance.randbytes(chance.choice((0, 8, 9)))
    elif secure.HasField("unmasking_response"):
        for _ in range(chance.randrange(5)):
            part.noise_or_prf_key_shares.add(prf_sk_share=chance.randbytes(36))
    return message


def _empty(chance: Random, _population: str, _phase: str) -> pb.ClientStreamMessage:
    message = pb.ClientStreamMessage(internal_client_id=chance.choice(("", "me")))
    if chance.choice((True, False)):
        message.serialized_side_channel_event.add(type_url="x/y")
    return message


def _piece(chance: Random, _population: str, _phase: str) -> pb.ClientStreamMessage:
    chunk = pb.ChunkedTransferMessage()
    kind = chance.choice(("start", "data", "ack", "end", ""))
    if kind == "start":
        chunk.start.uncompressed_size = chance.choice(_SIZES)
        chunk.start.blob_size_bytes = chance.choice(_SIZES)
        chunk.start.compression_level = chance.randrange(6)  # type: ignore[assignment]
    elif kind == "data":
        chunk.data.chunk_index = chance.randrange(-1, 4)
        chunk.data.chunk_bytes = chance.randbytes(chance.choice((0, 5, 1000, 200_000)))
    elif kind == "ack":
        chunk.ack.chunk_index = chance.randrange(-1, 4)
    elif kind == "end":
        chunk.end.chunk_count = chance.randrange(-1, 4)
    return pb.ClientStreamMessage(chunked_transfer=chunk)


def _bomb(chance: Random, _population: str, _phase: str) -> pb.ClientStreamMessage:
    """What inflates to 32 MiB, as the first chunk of a message that was announced or not."""
    message = pb.ClientStreamMessage()
    message.chunked_transfer.data.chunk_bytes = _BOMB
    message.chunked_transfer.data.chunk_index = chance.choice((0, 0, 1))
    return message


def _cut(chance: Random, data: bytes) -> Iterator[bytes]:
    """A message in chunks, compressed or not, with a piece lost or a size that is wrong now and then."""
    level = chance.randrange(4)
    blob = zlib.compress(data) if level else data
    size = chance.choice((7, 100, 32_768))
    pieces = [pb.ChunkedTransferMessage()]
    start = pieces[0].start
    start.uncompressed_size = len(data) + (chance.random() < 0.1)
    start.compression_level = level  # type: ignore[assignment]
    start.blob_size_bytes = chance.choice((len(blob) or 1, len(blob) or 1, 0))
    chunks = [blob[at : at + size] for at in range(0, len(blob), size)][:200] or [b""]
    for index, chunk in enumerate(chunks):
        part = pb.ChunkedTransferMessage.Data(chunk_index=index, chunk_bytes=chunk)
        pieces.append(pb.ChunkedTransferMessage(data=part))
    pieces.append(pb.ChunkedTransferMessage(end=pb.ChunkedTransferMessage.End(chunk_count=len(chunks))))
    if chance.random() < 0.2:
        del pieces[chance.randrange(len(pieces))]
    for piece in pieces:
        yield pb.ClientStreamMessage(chunked_transfer=piece).SerializeToString()


_BOMB = zlib.compress(bytes(2**25), 9)
_MAKERS: tuple[Callable[[Random, str, str], pb.ClientStreamMessage], ...] = (
    _checkin, _checkin, _checkin, _eligibility, _report, _report, _secure, _empty, _piece, _piece, _bomb,
)  # fmt: skip
