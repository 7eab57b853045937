"""A Node client on @grpc/grpc-js: another HTTP/2 and gRPC stack than the one we are built on."""

from __future__ import annotations

import pytest

from tests.conftest import SLOW
from tests.interop.cancels import DRIVERS, SOON_S, cancels
from tests.interop.tools import data, node, start
from tests.serving import Served

pytestmark = pytest.mark.timeout(30)

OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED = 0, 1, 2, 3, 4, 8
JSON = "application/json"


def test_R031_squares_come_back_in_order(square: Served) -> None:
    """Each value is answered by its square, typed and numbered, then OK."""
    done = node(square.grpc, start(JSON, inputs=("in",), outputs=("out",)), *(data(str(x)) for x in range(200)))
    assert done.payloads == [str(x * x).encode() for x in range(200)]
    assert {(frame["contentType"], frame["resultIndex"]) for frame in done.frames} == {(JSON, 0)}
    assert (done.code, done.details) == (OK, "")


def test_R054_names_may_be_left_out(square: Served) -> None:
    """A caller that sends no names is served by position."""
    done = node(square.grpc, start(JSON), data("5"))
    assert (done.payloads, done.code) == ([b"25"], OK)


def test_R062_two_inputs_are_told_apart(repeat: Served) -> None:
    """Frames are routed by argIndex, however they interleave."""
    signals = [data("ho", media_type="text/plain"), data("ha", media_type="text/plain")]
    signals += [data("2", index=1), data("1", index=1)]
    done = node(repeat.grpc, start("text/plain", inputs=("words", "counts"), outputs=("out",)), *signals)
    assert (done.payloads, done.code) == ([b"ho", b"ho", b"ha"], OK)
    assert {frame["contentType"] for frame in done.frames} == {"text/plain"}


def test_R105_two_outputs_are_told_apart(named: Served) -> None:
    """Each frame carries the number of its output."""
    signals = [data('["left", 1]'), data('["right", 2]'), data("[0, 3]")]
    done = node(named.grpc, start(JSON, JSON, outputs=("left", "right")), *signals, function="route")
    by_output = {index: [f["payload"] for f in done.frames if f["resultIndex"] == index] for index in (0, 1)}
    assert (by_output, done.code) == ({0: [b"1", b"3"], 1: [b"2"]}, OK)


def test_R133_headers_come_before_the_first_frame(named: Served) -> None:
    """Response headers and a greeting arrive while the client still holds back its data."""
    done = node(named.grpc, start(JSON), function="greeting", waitFor=1)
    assert done.events == ["metadata", "frame", "status"]
    assert (done.payloads, done.code) == ([b'"hello"'], OK)


@pytest.mark.parametrize(
    ("signals", "code", "details"),
    [
        ([data("1")], UNKNOWN, "Invoker: Protocol Violation"),
        ([], UNKNOWN, "Invoker: Protocol Violation"),
        ([start(JSON), start(JSON)], UNKNOWN, "Invoker: Protocol Violation"),
        ([start(JSON), data("1", index=7)], UNKNOWN, "Invoker: Protocol Violation"),
        ([start(JSON, JSON)], UNKNOWN, "Invoker: Protocol Violation"),
        ([start(JSON), data("{")], UNKNOWN, "Invoker: Bad Input Signal"),
        ([start(JSON), data("x", media_type="text/zglorbf")], INVALID_ARGUMENT, "Invoker: Unsupported Media Type: "),
        ([start("text/zglorbf")], INVALID_ARGUMENT, "Invoker: Not Acceptable: "),
    ],
)
def test_a_wrong_call_is_told_why(square: Served, signals: list[dict], code: int, details: str) -> None:
    """The status and the prefix of its detail reach a foreign client, and the next call is served."""
    done = node(square.grpc, *signals)
    assert done.code == code
    assert done.details.startswith(details)
    assert node(square.grpc, start(JSON), data("3")).payloads == [b"9"]


def test_R113_frames_before_an_error_arrive(named: Served) -> None:
    """Three frames, then the status of the exception."""
    done = node(named.grpc, start(JSON), function="boom")
    assert done.payloads == [b"1", b"2", b"3"]
    assert done.code == UNKNOWN
    assert done.details.startswith("Invoker: Unexpected Error")
    assert "boom" in done.details


def test_R108_headers_of_any_script_make_the_round_trip(named: Served) -> None:
    """Unicode names and values, and an empty value, arrive as they were sent."""
    headers = {"Ünï": "日本", "empty": ""}
    done = node(named.grpc, start(JSON), data("", media_type="text/plain", **headers), function="headers")
    assert done.code == OK
    assert {name: done.frames[0]["headers"][name] for name in headers} == headers


def test_R115_a_cancel_ends_an_endless_function(named: Served) -> None:
    """The client that cancels sees CANCELLED, and the function's cleanup has run."""
    before = _mark(named, "ticker.closed")
    done = node(named.grpc, start("text/plain"), function="ticker", cancelAfter=10)
    assert done.code == CANCELLED
    assert _mark(named, "ticker.closed") == before + 1


def test_R124_a_deadline_ends_an_endless_function(named: Served) -> None:
    """The client's deadline reaches the function."""
    done = node(named.grpc, start("text/plain"), function="ticker", deadlineMs=300)
    assert done.code == DEADLINE_EXCEEDED


@pytest.mark.timeout(120)
@pytest.mark.parametrize("driver", DRIVERS)
def test_R109_R124_what_node_cancels_is_not_committed(driver: str) -> None:
    """300 aggregators are cancelled at random moments or by their deadline: none whose reset came soon commits."""
    result = cancels(driver, 300, at_once=5, soon_s=SOON_S * SLOW, args=("--settle-s", str(0.05 * SLOW)))
    assert set(result.codes) <= {str(CANCELLED), str(DEADLINE_EXCEEDED)}
    assert len(result.soon) > 100, str(result)
    assert not any(result.soon), str(result)
    assert not result.odd, str(result)


def test_R114_a_function_may_end_before_its_input(named: Served) -> None:
    """The client gets OK although it never half-closes."""
    done = node(named.grpc, start(JSON), data("1"), data("2"), data("3"), function="early", halfClose=False)
    assert (done.payloads, done.code) == ([b"1", b"2"], OK)


def test_R121_an_oversize_frame_ends_its_own_call_only(named: Served) -> None:
    """Five MiB against a limit of four: RESOURCE_EXHAUSTED, and the next call is served."""
    done = node(named.grpc, start(JSON), data(b"x" * (5 << 20), media_type="text/plain"), function="echo")
    assert done.code == RESOURCE_EXHAUSTED
    assert node(named.grpc, start(JSON), data("3"), function="square").payloads == [b"9"]


def _mark(named: Served, key: str) -> int:
    """A count that the named functions keep, once it has stopped moving for the call before."""
    (payload,) = node(named.grpc, start(JSON), data(key, media_type="text/plain"), function="marks").payloads
    return int(payload)
