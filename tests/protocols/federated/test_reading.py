"""Tests of `invoker.protocols.federated.reading`."""

from __future__ import annotations

import pytest
from google.protobuf.any_pb2 import Any

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.errors import Status, StatusError
from invoker.message import EMPTY
from invoker.protocols.federated.messages import Checkin, ReportIn
from invoker.protocols.federated.negotiation import DeviceSettings
from invoker.protocols.federated.reading import check_same, checkin_of, parsed, report_of
from tests.protocols.federated.coordinators import checkin, report

NAN, INF = float("nan"), float("inf")


def read(**fields: object) -> Checkin:
    """A checkin as the coordinator gets it."""
    return checkin_of(checkin(**fields).checkin_request, EMPTY)


def reported(*events: Any, **fields: object) -> ReportIn:
    """A report as the coordinator gets it."""
    request = report(**fields).report_request
    request.report.serialized_train_event.extend(events)
    return report_of(request, DeviceSettings(events=3, event_bytes=1000))


def stats(seconds: int, nanos: int = 0, url: str = "type.googleapis.com") -> Any:
    """What a client says of its plan's time."""
    value = pb.ClientExecutionStats()
    value.duration.seconds, value.duration.nanos = seconds, nanos
    return Any(type_url=f"{url}/google.internal.federatedml.v2.ClientExecutionStats", value=value.SerializeToString())


def test_a_checkin_is_read_whole() -> None:
    """Each of its texts has its place."""
    got = read(retry_token="t", attestation_measurement="a", client_version="v", weights=[("x", 1.5), ("y", 2.0)])
    assert (got.population, got.retry_token, got.attestation, got.client_version) == ("iris", "t", "a", "v")
    assert got.weights == {"x": 1.5, "y": 2.0}
    assert got.weights_version == 1


def test_F041_no_info_and_no_weights_are_two_things() -> None:
    """The coordinator answers them differently."""
    assert read().weights is None
    assert read(weights=[]).weights == {}


@pytest.mark.parametrize("weight", [0.0, -1.0, NAN, INF, -INF])
def test_F044_a_weight_is_above_zero_and_finite(weight: float) -> None:
    """Else the checkin cannot be."""
    with pytest.raises(StatusError, match="above 0, and finite") as caught:
        read(weights=[("x", 1.0), ("y", weight)])
    assert caught.value.status is Status.INVALID_ARGUMENT


def test_F044_a_task_has_one_weight() -> None:
    """Two of the same name cannot be, though they are equal."""
    with pytest.raises(StatusError, match="'x' has two weights"):
        read(weights=[("x", 1.0), ("y", 1.0), ("x", 1.0)])


def test_F045_weights_of_another_version_mean_nothing() -> None:
    """The coordinator gets the version, and rejects the client; nothing is said against the weights."""
    for version in (0, 2, -1):
        got = read(weights=[("x", NAN), ("x", 1.0)], version=version)
        assert (got.weights, got.weights_version) == ({}, version)


def test_F009_two_checkins_are_compared_by_what_names_the_client() -> None:
    """What it can do may differ."""
    first = Checkin("p", "t", "a", "v")
    check_same(first, Checkin("p", "t", "a", "v", weights={"x": 1.0}))
    with pytest.raises(StatusError, match="the retry token of the second"):
        check_same(first, Checkin("p", "", "a", "v"))


def test_F061_a_status_that_nobody_knows_is_unknown() -> None:
    """Those of google.rpc.Code are kept."""
    assert [reported(status_code=code).status for code in (0, 13, 16, 17, -1, 2**31 - 1)] == [0, 13, 16, 2, 2, 2]


def test_F062_the_duration_is_found_among_events() -> None:
    """Foreign ones, broken ones and negative times are passed over."""
    foreign = Any(type_url="x.example/other.Event", value=b"\xff\xff")
    broken = Any(type_url=stats(1).type_url, value=b"\xff\xff")
    assert reported(foreign, broken, stats(3, 500_000_000)).duration_s == 3.5
    assert reported(stats(-1), stats(1, -1)).duration_s is None
    assert reported(stats(2, url="elsewhere.example")).duration_s == 2.0
    assert reported(Any(type_url=stats(1).type_url)).duration_s is None


def test_F064_events_have_a_most_number_and_a_most_size() -> None:
    """Exactly so many pass."""
    reported(*[stats(1)] * 3)
    for events, text in (
        ([stats(1)] * 4, "4 train events"),
        ([Any(value=bytes(990))] * 2, "events of 1986 bytes exceed"),
    ):
        with pytest.raises(StatusError, match=text) as caught:
            reported(*events)
        assert caught.value.status is Status.INVALID_ARGUMENT


def test_a_report_without_a_report_is_an_empty_update() -> None:
    """What the bytes mean is the function's business (D19)."""
    assert report_of(pb.ReportRequest(), DeviceSettings()) == ReportIn(b"", 0, None)


def test_bytes_that_are_no_message_are_a_violation() -> None:
    """Protobuf's own error never leaves."""
    with pytest.raises(StatusError, match="not a valid ClientStreamMessage") as caught:
        parsed(b"\xff\xff\xff")
    assert caught.value.status is Status.INVALID_ARGUMENT
