"""`invoker.protocols.federated.client.session` under whatever a server may say, in any order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.errors import Status
from invoker.protocols.federated.client.messages import Report
from tests.protocols.federated.client.script import Device, accepted, ack, eligibility, no_eligibility, rejected, taken
from tests.protocols.federated.client.test_session import CHUNKED, SECAGG, FakeSecAgg, bad_level, half_acked, said

SAID = [
    ack(),
    no_eligibility(**CHUNKED),
    no_eligibility(),
    eligibility(),
    accepted(),
    accepted(**SECAGG),
    rejected(),
    taken(),
    half_acked(),
    bad_level(),
    said("share_keys_request"),
    said("masked_input_request"),
    said("unmasking_request"),
    said("abort"),
    pb.ServerStreamMessage(),
]
ACTS = ("report", "fail", "eligible", "nothing", "abort", "ended", "secure")


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.sampled_from(SAID).map(lambda one: one.SerializeToString()) | st.binary(max_size=30) | st.sampled_from(ACTS)
    )
)
def test_whatever_a_server_says_and_a_device_does_ends_well(turns: list[bytes | str]) -> None:
    """Nothing is raised; what has ended stays as it ended, and the bytes are counted."""
    device = Device(new_secagg=FakeSecAgg).start()
    session, received, ended = device.session, 0, None
    acts = {
        "report": lambda: session.report(Report(b"u")),
        "secure": lambda: session.report(Report(vectors={"w": [1]})),
        "fail": lambda: session.fail(Status.NOT_FOUND, "gone"),
        "eligible": lambda: session.eligible({"train": 1.0}),
        "nothing": lambda: session.eligible({}),
        "abort": session.abort,
        "ended": lambda: session.ended(Status.UNAVAILABLE),
    }
    for turn in turns:
        if isinstance(turn, str):
            acts[turn]()
        else:
            received += 0 if session.has_ended else len(turn)
            session.receive(turn)
        device.drain()
        if ended is None and session.has_ended:
            ended = (session.attempt().end, session.attempt().status)
    if ended is not None:
        assert (session.attempt().end, session.attempt().status) == ended
    assert session.attempt().received == received
    assert session.attempt().sent == sum(one.ByteSize() for one in device.sent)
