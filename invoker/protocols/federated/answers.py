"""What the server answers, as messages of the wire. Which form of a blob a client gets is decided here (F-065)."""

from __future__ import annotations

import math
from typing import Final

from google.protobuf.duration_pb2 import Duration

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.protocols.federated.messages import Capabilities, Eligibility, Offer, Resource, Window

__all__ = ["ack", "fill_acceptance", "fill_eligibility", "rejection", "report_response", "resource", "window"]

_NANO: Final = 1_000_000_000
_LONGEST_S: Final = 315_576_000_000.0
"""The longest that a Duration may be, 10,000 years."""


def window(given: Window) -> pb.RetryWindow:
    """A valid retry window: 0 <= delay_min <= delay_max, and both are set (F-056)."""
    least = _sane(given.delay_min_s)
    return pb.RetryWindow(
        retry_token=given.token,
        delay_min=_duration(least),
        delay_max=_duration(max(least, _sane(given.delay_max_s))),
    )


def ack(windows: tuple[Window, Window]) -> pb.ServerStreamMessage:
    """When to come again, for either decision; real clients need both (F-002)."""
    message = pb.ServerStreamMessage()
    message.checkin_request_ack.retry_window_if_accepted.CopyFrom(window(windows[0]))
    message.checkin_request_ack.retry_window_if_rejected.CopyFrom(window(windows[1]))
    return message


def rejection(given: Window | None) -> pb.RejectionInfo:
    """The rejection of a client; it has a retry window if the client asked for no ack (F-059)."""
    return pb.RejectionInfo(retry_window=None if given is None else window(given))


def report_response(given: Window | None) -> pb.ServerStreamMessage:
    """The answer to a report that was taken, with a retry window if there is one (F-059)."""
    response = pb.ReportResponse(retry_window=None if given is None else window(given))
    return pb.ServerStreamMessage(report_response=response)


def resource(given: Resource, *, gzip: bool) -> pb.UriResource:
    """Where a client downloads a blob; ``max_age`` is set if the client may cache it (F-067)."""
    message = pb.UriResource(uri=given.gzip_uri if gzip and given.gzip_uri else given.uri)
    if given.cache_id:
        message.client_cache_id = given.cache_id
        message.max_age.CopyFrom(_duration(_sane(given.max_age_s)))
    return message


def fill_eligibility(payload: pb.EligibilityEvalPayload, given: Eligibility, can: Capabilities) -> None:
    """The eligibility task, as its client can take it."""
    payload.execution_id = given.execution_id
    if can.eligibility_http and given.checkpoint.resource is not None:
        payload.init_checkpoint_resource.CopyFrom(resource(given.checkpoint.resource, gzip=can.gzip))
    else:
        payload.init_checkpoint = given.checkpoint.data
    if can.eligibility_http and given.plan.resource is not None:
        payload.plan_resource.CopyFrom(resource(given.plan.resource, gzip=can.gzip))
    else:
        payload.plan = given.plan.data
    if given.spec:
        payload.population_eligibility_spec = given.spec


def fill_acceptance(info: pb.AcceptanceInfo, offer: Offer, can: Capabilities) -> None:
    """A place in a round, as its client can take it (F-047, F-089)."""
    info.execution_phase_id, info.task_name = offer.phase_id, offer.task
    if can.http and offer.checkpoint.resource is not None:
        info.init_checkpoint_resource.CopyFrom(resource(offer.checkpoint.resource, gzip=can.gzip))
    else:
        info.init_checkpoint = offer.checkpoint.data
    if can.http and offer.plan.resource is not None:
        info.plan_resource.CopyFrom(resource(offer.plan.resource, gzip=can.gzip))
    else:
        info.plan = offer.plan.data
    if offer.select_uri:
        info.federated_select_uri_info.uri_template = offer.select_uri
    if offer.secagg is not None:
        for name, (modulus, _length) in offer.secagg.vectors.items():
            info.side_channels[name].secure_aggregand.modulus = modulus
        terms = info.side_channel_protocol_execution_info.secure_aggregation
        terms.expected_number_of_clients = offer.secagg.expected
        terms.minimum_surviving_clients_for_reconstruction = offer.secagg.threshold
        terms.minimum_clients_in_server_visible_aggregate = offer.secagg.min_visible


def _sane(seconds: float) -> float:
    return 0.0 if math.isnan(seconds) else min(max(0.0, seconds), _LONGEST_S)


def _duration(seconds: float) -> Duration:
    whole, rest = divmod(round(seconds * _NANO), _NANO)
    return Duration(seconds=whole, nanos=rest)
