"""The Evergreen chapters catch broken servers: each fault of the peer is caught by the scenario that should."""

from __future__ import annotations

import pytest

from invoker_conformance import select
from invoker_conformance.runner import Outcome, Verdict, run
from invoker_conformance.target import Target, parse_addresses
from tests.conformance.evergreen.peer import Peer

CAUGHT = {
    "sends actions": "single_text",
    "counts from one": "single_text",
    "takes an empty message for the end": "empty_message_keepalive",
    "half-close cancels": "half_close_waits_for_slow_action",
    "own prefix": "garbage_wire_bytes",
    "shares nodes between sessions": "sessions_isolated",
    "ignores seq": "shuffled_fragments",
    "last duplicate wins": "duplicate_first_wins",
    "checks metadata before duplicates": "duplicate_after_final_with_metadata",
    "takes a seq beyond the final one": "seq_beyond_final",
    "takes a low final seq": "final_below_received",
    "takes a negative seq": "negative_seq",
    "takes empty ids": "ids_empty_or_long",
    "takes both kinds": "both_kinds_in_one_fragment",
    "takes conflicts of kinds": "kind_conflict_out_of_order",
    "takes metadata anywhere": "metadata_on_seq_one",
    "needs no metadata": "metadata_missing_on_seq_zero",
    "decodes fragments alone": "utf8_split_inside_character",
    "reads the end of a turn": "end_of_turn_marker",
    "takes any reference": "other_schemes_refused",
    "believes references": "type_of_the_node_wins",
    "waits for whole nodes": "leaves_are_handed_on_early",
    "no check of cycles": "cycles",
    "no limit of depth": "depth_64_ok_65_fails",
    "reads no outputs": "output_as_input",
    "reads a doubled child once": "random_sessions",
    "ignores targets": "targets",
    "takes unknown inputs": "input_names",
    "takes used output ids": "output_ids_in_use",
    "lets clients write outputs": "client_writes_output_node",
    "sends unlisted outputs": "unlisted_output_not_sent",
    "drops configs": "configs_passed",
    "waits for the half-close": "an_action_starts_at_once",
    "one action at a time": "slow_and_quick_actions",
    "keeps streams until they end": "first_token_latency",
    "sends metadata everywhere": "stream_text_output",
    "no terminator": "stream_text_output",
    "sends children before their parent": "stream_object_output",
    "sends large fragments": "large_value_split",
    "loses fragments before a failure": "fragments_before_a_failure",
    "leaks tracebacks": "failure_text_is_clean",
    "failures spare others": "failure_cancels_others",
    "never misses": "incomplete_input_at_half_close",
    "misses before the half-close": "incomplete_input_before_half_close",
    "deaf to cancel": "cancel_mid_session",
    "takes a cancel for a half-close": "cancel_is_not_half_close",
    "no back-pressure": "a_client_that_does_not_read",
}


async def judged(name: str, *faults: str) -> Outcome:
    """What the suite says of a peer in one scenario."""
    async with Peer(*faults) as peer:
        target = Target(
            parse_addresses([peer.address]),
            parse_addresses([]),
            timeout_s=0.6 if faults else 5.0,
            message_bytes=4 << 20,
        )
        try:
            (outcome,) = await run(target, select(only=name, protocol="evergreen"))
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


async def test_a_missing_action_is_not_provided() -> None:
    """An action that the peer does not serve is neither passed nor failed."""
    outcome = await judged("results_that_cannot_be_sent")
    assert outcome.verdict is Verdict.NOT_PROVIDED
    assert outcome.reason == "action odd"


async def test_a_missing_extension_is_not_provided() -> None:
    """An extension that the peer does not accept is neither passed nor failed."""
    outcome = await judged("drop_not_negotiated")
    assert outcome.verdict is Verdict.NOT_PROVIDED
    assert outcome.reason == "extension ttl"
