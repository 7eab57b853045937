"""Tests of `invoker.protocols.federated.answers`."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.protocols.federated import answers
from invoker.protocols.federated.messages import Blob, Capabilities, Eligibility, Offer, Resource, Window
from tests.protocols.federated.coordinators import OFFER, SECURE_OFFER, TASK


def accepted(offer: Offer, can: Capabilities) -> pb.AcceptanceInfo:
    """What an accepted client gets."""
    info = pb.AcceptanceInfo()
    answers.fill_acceptance(info, offer, can)
    return info


def tried(task: Eligibility, can: Capabilities) -> pb.EligibilityEvalPayload:
    """What a client of an eligibility task gets."""
    payload = pb.EligibilityEvalPayload()
    answers.fill_eligibility(payload, task, can)
    return payload


def test_F065_what_is_downloaded_depends_on_the_two_flags_apart() -> None:
    """One is for tasks, the other for the eligibility task; else blobs are inline."""
    for task, trying in ((False, False), (True, False), (False, True), (True, True)):
        can = Capabilities(http=task, eligibility_http=trying)
        info, payload = accepted(OFFER, can), tried(TASK, can)
        for message, by_http in ((info, task), (payload, trying)):
            end = "_resource" if by_http else ""
            assert message.WhichOneof("plan_type") == f"plan{end}"
            assert message.WhichOneof("init_checkpoint_type") == f"init_checkpoint{end}"
        assert task or (info.plan, info.init_checkpoint) == (b"the plan", b"the model")


def test_F065_a_blob_that_is_nowhere_is_inline() -> None:
    """Also for clients that could download it."""
    offer = msgspec.structs.replace(OFFER, plan=Blob(b"here"))
    info = accepted(offer, Capabilities(http=True))
    assert info.plan == b"here"
    assert info.init_checkpoint_resource.uri == "https://x/model"
    payload = tried(msgspec.structs.replace(TASK, plan=Blob(b"here")), Capabilities(eligibility_http=True))
    assert payload.plan == b"here"
    assert payload.init_checkpoint_resource.uri == "https://x/model"
    assert tried(
        msgspec.structs.replace(TASK, checkpoint=Blob(b"x")), Capabilities(eligibility_http=True)
    ).init_checkpoint
    assert accepted(msgspec.structs.replace(OFFER, checkpoint=Blob(b"x")), Capabilities(http=True)).init_checkpoint


def test_F066_gzip_is_for_clients_that_offer_it() -> None:
    """Each form has its own address."""
    for gzip, uri in ((False, "https://x/plan"), (True, "https://x/plan.gz")):
        assert accepted(OFFER, Capabilities(http=True, gzip=gzip)).plan_resource.uri == uri


def test_F067_how_long_to_keep_it_is_told_exactly_if_it_may_be_kept() -> None:
    """Without an id there is no time."""
    kept = answers.resource(Resource("u", "g", "hash", 1.5), gzip=False)
    assert (kept.client_cache_id, kept.max_age.seconds, kept.max_age.nanos) == ("hash", 1, 500_000_000)
    fleeting = answers.resource(Resource("u", "g", "", 9.0), gzip=False)
    assert not fleeting.client_cache_id
    assert not fleeting.HasField("max_age")


def test_F047_an_acceptance_names_round_and_task() -> None:
    """A plain one has no side channels."""
    info = accepted(OFFER, Capabilities())
    assert (info.execution_phase_id, info.task_name) == ("phase-1", "train")
    assert not info.side_channels
    assert not info.HasField("side_channel_protocol_execution_info")
    assert not info.HasField("federated_select_uri_info")


def test_F089_a_secure_one_tells_the_modulus_of_each_vector_and_the_three_numbers() -> None:
    """As real clients read them."""
    info = accepted(SECURE_OFFER, Capabilities())
    moduli = {name: one.secure_aggregand.modulus for name, one in info.side_channels.items()}
    assert moduli == {"w": 1 << 20, "b": 5}
    told = info.side_channel_protocol_execution_info.secure_aggregation
    assert (
        told.expected_number_of_clients,
        told.minimum_surviving_clients_for_reconstruction,
        told.minimum_clients_in_server_visible_aggregate,
    ) == (9, 5, 4)


@given(st.floats(), st.floats())
def test_F056_windows_can_be_trusted(least: float, most: float) -> None:
    """0 <= delay_min <= delay_max, both are told, and both are Durations that any client can read."""
    told = answers.window(Window(least, most, "token"))
    assert told.HasField("delay_min")
    assert told.HasField("delay_max")
    low, high = ((one.seconds, one.nanos) for one in (told.delay_min, told.delay_max))
    assert (0, 0) <= low <= high
    assert high[0] <= 315_576_000_000
    assert 0 <= low[1] < 10**9 > high[1] >= 0


def test_F056_windows_that_are_right_stay_as_they_are() -> None:
    """To the nanosecond."""
    told = answers.window(Window(1.25, 2.5))
    assert told.delay_min.ToNanoseconds() == 1_250_000_000
    assert told.delay_max.ToNanoseconds() == 2_500_000_000
    assert answers.window(Window(-1.0, -2.0)).delay_max.ToNanoseconds() == 0
    assert answers.window(Window(1234.0, 1233.0)).delay_max.ToNanoseconds() == 1_234_000_000_000
