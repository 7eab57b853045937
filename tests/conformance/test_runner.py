"""The suite catches broken invokers: each fault of the peer is caught by the scenario that should."""

from __future__ import annotations

import pytest

from invoker.conformance import select
from invoker.conformance.runner import Outcome, Verdict, run
from invoker.conformance.target import Target, parse_addresses
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
}


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


async def test_a_missing_function_is_not_provided() -> None:
    """A function that the peer does not serve is neither passed nor failed."""
    outcome = await judged("hundred_values_then_one")
    assert outcome.verdict is Verdict.NOT_PROVIDED
    assert outcome.reason == "function hundred"
