"""Makes the server's answers as messages of the wire, and decides in which form a client gets a blob (F-065)."""

from __future__ import annotations

import math
from typing import Any, Final

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.protocols.federated.messages import Blob, Capabilities, Eligibility, Offer, Resource, Window
from invoker.protocols.federated.wire.durations import duration_of

_LONGEST_S: Final = 315_576_000_000.0
"""The largest Duration in seconds, about 10,000 years."""


def window(given: Window) -> pb.RetryWindow:
    """Make a valid retry window, with 0 <= delay_min <= delay_max, both of which are set (F-056)."""
    least = _sane(given.delay_min_s)
    return pb.RetryWindow(
        retry_token=given.token,
        delay_min=duration_of(least),
        delay_max=duration_of(max(least, _sane(given.delay_max_s))),
    )


def ack(windows: tuple[Window, Window]) -> pb.ServerStreamMessage:
    """The ack of a checkin.

    It has two retry windows, one after an acceptance and one after a rejection; real clients need both (F-002).
    """
    message = pb.ServerStreamMessage()
    message.checkin_request_ack.retry_window_if_accepted.CopyFrom(window(windows[0]))
    message.checkin_request_ack.retry_window_if_rejected.CopyFrom(window(windows[1]))
    return message


def rejection(given: Window | None) -> pb.RejectionInfo:
    """The rejection of a client; it has a retry window only if the client got no ack, which has one (F-059)."""
    return pb.RejectionInfo(retry_window=None if given is None else window(given))


def report_response(given: Window | None) -> pb.ServerStreamMessage:
    """The answer to an accepted report, with a retry window if there is one (F-059)."""
    response = pb.ReportResponse(retry_window=None if given is None else window(given))
    return pb.ServerStreamMessage(report_response=response)


def resource(given: Resource, *, gzip: bool) -> pb.UriResource:
    """The address of a blob for downloads; ``max_age`` is set if the client may cache the blob (F-067)."""
    message = pb.UriResource(uri=given.gzip_uri if gzip and given.gzip_uri else given.uri)
    if given.cache_id:
        message.client_cache_id = given.cache_id
        message.max_age.CopyFrom(duration_of(_sane(given.max_age_s)))
    return message


def fill_eligibility(payload: pb.EligibilityEvalPayload, given: Eligibility, can: Capabilities) -> None:
    """Fill in the eligibility task, in a form that the client supports."""
    payload.execution_id = given.execution_id
    _fill(payload, "init_checkpoint", given.checkpoint, by_http=can.eligibility_http, gzip=can.gzip)
    _fill(payload, "plan", given.plan, by_http=can.eligibility_http, gzip=can.gzip)
    if given.spec:
        payload.population_eligibility_spec = given.spec


def fill_acceptance(info: pb.AcceptanceInfo, offer: Offer, can: Capabilities) -> None:
    """Fill in the offer of a round, in a form that the client supports (F-047, F-089)."""
    info.execution_phase_id, info.task_name = offer.phase_id, offer.task
    _fill(info, "init_checkpoint", offer.checkpoint, by_http=can.http, gzip=can.gzip)
    _fill(info, "plan", offer.plan, by_http=can.http, gzip=can.gzip)
    if offer.select_uri:
        info.federated_select_uri_info.uri_template = offer.select_uri
    if offer.secagg is not None:
        for name, (modulus, _length) in offer.secagg.vectors.items():
            info.side_channels[name].secure_aggregand.modulus = modulus
        terms = info.side_channel_protocol_execution_info.secure_aggregation
        terms.expected_number_of_clients = offer.secagg.expected
        terms.minimum_surviving_clients_for_reconstruction = offer.secagg.threshold
        terms.minimum_clients_in_server_visible_aggregate = offer.secagg.min_visible


def _fill(message: Any, name: str, blob: Blob, *, by_http: bool, gzip: bool) -> None:
    if by_http and blob.resource is not None:
        getattr(message, f"{name}_resource").CopyFrom(resource(blob.resource, gzip=gzip))
    else:
        setattr(message, name, blob.data)


def _sane(seconds: float) -> float:
    return 0.0 if math.isnan(seconds) else min(max(0.0, seconds), _LONGEST_S)
