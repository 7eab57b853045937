"""The suite catches broken invokers: each fault of the peer is caught by the scenario that should."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from invoker_conformance import select
from invoker_conformance.runner import Outcome, Verdict, run
from invoker_conformance.target import Address, Target, Unreachable, parse_addresses
from tests.conformance.faulty import Peer

CAUGHT = {
    "accepts a second start": "second_start",
    "ignores empty signals": "empty_signal_after_start",
    "no start needed": "data_first",
    "own prefix": "half_close_immediately",
    "hangs on half-close": "aggregator_on_empty_input",
    "drops a frame": "square_json",
    "wrong result index": "square_json",
    "wildcard type": "square_json",
    "reorders input": "interleaved_10k",
    "ignores the index": "interleaved_10k",
    "bounded inputs": "drain_second_input_first",
    "repairs payloads": "invalid_json",
    "late negotiation": "not_acceptable",
    "starts at first data": "greeting_before_input",
    "waits for half-close": "function_returns_early",
    "ends with the first output": "last_output_completes",
    "one output after the other": "outputs_are_merged_fairly",
    "swallows errors": "raises_after_three",
    "loses values before an error": "raises_after_three",
    "leaks tracebacks": "error_text_is_clean",
    "long details": "error_text_of_20_kb",
    "end before cancel": "cancel_is_not_completion",
    "deaf to cancel": "cancel_mid_stream",
    "leaks across calls": "interleaved_aggregators",
    "one call at a time": "interleaved_aggregators",
    "no back-pressure": "slow_consumer_of_endless_output",
    "believes half-closes": "reset_behind_the_half_close_is_a_cancel",
    "refuses at once": "refusal_waits_for_the_first_data",
    "loses the tail": "replies_behind_a_burst_are_all_there",
}


@pytest.fixture(autouse=True)
def _fewer_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault shows by eight times what a bounded input holds here; real servers are judged with 10,000 frames."""
    monkeypatch.setattr("invoker_conformance.riff.scenarios_flow._FRAMES", 2_000)


async def judged(name: str, *faults: str) -> Outcome:
    """What the suite says of a peer in one scenario."""
    async with Peer(*faults) as peer:
        target = Target(
            parse_addresses([peer.address]),
            parse_addresses([]),
            timeout_s=1.0 if faults else 5.0,
            message_bytes=4 << 20,
        )
        try:
            (outcome,) = await run(target, select(only=name))
        finally:
            await target.close()
    return outcome


@pytest.mark.parametrize("name", sorted(set(CAUGHT.values())))
async def test_a_right_peer_passes(name: str) -> None:
    """Without faults the peer passes each scenario used below, so that a failure there is the fault's."""
    outcome = await judged(name)
    assert outcome.verdict is Verdict.PASS, outcome.failure


@pytest.mark.parametrize(("fault", "name"), CAUGHT.items())
async def test_a_fault_is_caught(fault: str, name: str) -> None:
    """A peer with one fault fails the scenario that judges it, and the failure says what was met and expected."""
    outcome = await judged(name, fault)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.failure is not None
    assert outcome.failure.met
    assert outcome.failure.expected
    assert outcome.failure.sent


@pytest.mark.parametrize("name", ["cancel_after_a_while_is_not_completion", "cancel_is_not_completion"])
async def test_a_peer_whose_functions_begin_late_passes(name: str) -> None:
    """A scenario that cancels a running function waits until it runs, however busy the machine is."""
    outcome = await judged(name, "begins late")
    assert outcome.verdict is Verdict.PASS, outcome.failure


async def test_a_missing_function_is_not_provided() -> None:
    """A function that the peer does not serve is neither passed nor failed."""
    outcome = await judged("hundred_values_then_one")
    assert outcome.verdict is Verdict.NOT_PROVIDED
    assert outcome.reason == "function hundred"


async def test_a_process_that_ends_is_one_finding() -> None:
    """Its end breaks R-013 alone, and what comes behind it is not judged: neither passed nor failed."""
    async with Peer("dies of an index") as peer:
        target = Target(parse_addresses([peer.address]), parse_addresses([]), timeout_s=5.0, message_bytes=4 << 20)
        try:
            died, behind = await run(target, select(only="arg_index_out_of_range,content_type_wildcard"))
        finally:
            await target.close()
    assert died.verdict is Verdict.FAIL
    assert died.broken == ("R-013",)
    assert f"the process at {peer.address} ended" in str(died.failure)
    assert behind.verdict is Verdict.NOT_JUDGED
    assert behind.reason == f"the process at {peer.address} ended in arg_index_out_of_range"


class Restarted(Target):
    """A target that listens, or does not, as a script says."""

    script: Iterator[bool] = iter(())

    async def listens(self, address: Address) -> bool:
        """As the script says next."""
        return next(self.script)


async def test_a_process_that_was_started_again_is_judged() -> None:
    """Scenarios behind an end run as soon as somebody listens again."""
    async with Peer("repairs payloads") as peer:
        target = Restarted(parse_addresses([peer.address]), parse_addresses([]), timeout_s=5.0, message_bytes=4 << 20)
        target.script = iter((False, True))
        try:
            died, behind = await run(target, select(only="json_is_strict,square_json"))
        finally:
            await target.close()
    assert died.broken == ("R-013",)
    assert behind.verdict is Verdict.PASS
    assert not list(target.script)


async def test_nobody_at_an_address_from_the_start_is_no_finding() -> None:
    """The suite cannot judge then, and says so."""
    async with Peer() as peer:
        pass
    target = Target(parse_addresses([peer.address]), parse_addresses([]), timeout_s=1.0, message_bytes=4 << 20)
    with pytest.raises(Unreachable, match="nothing answers"):
        await run(target, select(only="square_json"))


@pytest.mark.parametrize("protocol", ["riff", "evergreen", "toolbridge", "federated", "graphpipe"])
async def test_a_target_that_never_answers_fails(protocol: str) -> None:
    """A connection is made, and nothing comes: that is a verdict about the target, and the judge goes on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        mute = f"127.0.0.1:{listener.getsockname()[1]}"
        target = Target(parse_addresses([mute]), parse_addresses([mute]), timeout_s=0.1, message_bytes=4 << 20)
        try:
            outcomes = await run(target, select(protocol=protocol)[:2])
        finally:
            await target.close()
    assert [outcome.verdict for outcome in outcomes] == [Verdict.FAIL] * 2


async def test_functions_without_inputs_are_a_fault_of_their_own() -> None:
    """Where they are not served, scenarios that only make use of one are not provided instead of failed."""
    outcome = await judged("raises_after_three", "serves no sources")
    assert outcome.verdict is Verdict.NOT_PROVIDED
    assert "R-037" in outcome.reason
    assert (await judged("source_needs_no_input", "serves no sources")).verdict is Verdict.FAIL
