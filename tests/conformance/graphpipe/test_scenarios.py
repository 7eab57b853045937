"""The GraphPipe chapters catch broken servers: each fault of the peer is caught by the scenario that should."""

from __future__ import annotations

import pytest

from invoker_conformance import select
from invoker_conformance.runner import Outcome, Verdict, run
from invoker_conformance.target import ModelFacts, Target, parse_addresses
from tests.conformance.graphpipe.peer import LIMIT_BYTES, Peer

CAUGHT = {
    "wants a content type": "any_content_type",
    "knows no chunks": "chunked_body",
    "believes lengths": "announced_length_above_the_limit",
    "ignores codings": "content_encoding",
    "takes any method": "methods",
    "answers any path": "unknown_paths",
    "shuts down": "no_shutdown",
    "closes after errors": "connection_after_errors",
    "ignores Accept": "accept",
    "answers in chunks": "http_1_0",
    "continues before it looks": "expect_continue",
    "is never ready": "readiness",
    "infers to describe": "metadata_invoke_nothing",
    "refuses the last byte": "body_at_the_limit",
    "needs a table for metadata": "metadata_without_table",
    "hides headers": "headers_in_the_context",
    "knows no aliases": "aliases",
    "binds empty names to the first": "default_names",
    "ignores surplus tensors": "missing_and_surplus_inputs",
    "knows no defaults": "input_with_default",
    "takes empty names of outputs": "unknown_outputs",
    "leaves functions open": "endless_output_is_closed",
    "joins all": "number_of_values",
    "trusts positions": "references_astray",
    "trusts tables": "vtable_astray",
    "trusts fields": "field_outside_its_table",
    "trusts counts": "counts_beyond_the_end",
    "counts wrap": "counts_beyond_the_end",
    "distances are unsigned": "vtable_behind_its_table",
    "needs alignment": "odd_positions",
    "needs zeros": "strings_without_zero",
    "refuses unknown slots": "unknown_slots",
    "refuses trailing bytes": "trailing_bytes",
    "takes any type for metadata": "request_types",
    "decodes names leniently": "names_that_are_no_text",
    "counts shared once": "many_references_to_a_large_tensor",
    "no scalars": "scalars",
    "writes no shape for scalars": "scalars",
    "products wrap": "sizes_that_overflow",
    "takes any length": "data_length",
    "takes negative sizes": "negative_sizes",
    "takes data and strings": "data_and_strings",
    "takes any type": "types_that_are_none",
    "strips zeros": "strings_of_any_bytes",
    "quiets NaN": "every_float16",
    "writes odd positions": "reference_inference",
    "ignores names": "swapped_inputs",
    "takes any number of names": "number_of_names",
    "last name wins": "wrong_names",
    "orders outputs itself": "wanted_outputs",
    "computes all": "only_wanted_outputs_are_computed",
    "casts": "declared_type",
    "takes any shape": "declared_shape",
    "tells errors as text": "no_buffer",
    "has its own codes": "no_buffer",
    "has no header for codes": "no_buffer",
    "sends tensors with errors": "number_of_names",
    "has status 200 always": "function_raises",
    "leaks tracebacks": "function_raises",
    "tells all": "long_messages",
    "breaks promises": "broken_promises",
    "takes the first value": "values_are_joined",
    "loses rows": "rows_that_are_lost",
    "does not see who leaves": "client_leaves",
    "takes configs for text": "config_as_it_came",
    "takes any config for JSON": "config_as_json",
    "joins anything": "what_is_not_joined",
    "fails the whole batch": "errors_stay_apart",
    "reverses": "order_of_declaration",
    "leaves out empty vectors": "json_and_buffer_agree",
    "tells no -1": "what_is_declared",
    "has two versions": "json_and_buffer_agree",
    "sends no lengths": "messages_behind_their_length",
    "answers in another order": "messages_behind_their_length",
    "reads on": "a_client_that_does_not_read_answers",
    "invokes what was cut": "end_inside_a_message",
    "is never too late": "inference_takes_too_long",
    "tells no time": "too_many_at_once",
    "has no root": "model_at_the_root",
}
CAUGHT_TOO = {
    "believes lengths": "wrong_lengths",
    "closes after errors": "errors_keep_a_socket",
    "has status 200 always": "no_buffer",
}
EVERY = sorted({*CAUGHT.items(), *CAUGHT_TOO.items()})


async def judged(name: str, *faults: str) -> Outcome:
    """What the suite says of a peer in one scenario."""
    timeout_s = 0.6 if faults else 5.0
    facts = {"timeout_s": 0.3, "is_root": True} if name == "inference_takes_too_long" else {"is_root": True}
    most = 4 if name == "too_many_at_once" else 0
    async with Peer(*faults, timeout_s=float(facts.get("timeout_s", 30.0)), most=most or 1000) as peer:
        models = ModelFacts(tcp=peer.tcp, limit_bytes=LIMIT_BYTES, most=most, **facts)  # type: ignore[arg-type]
        target = Target(
            parse_addresses([]), parse_addresses([peer.http]), timeout_s=timeout_s, message_bytes=4 << 20, models=models
        )
        try:
            (outcome,) = await run(target, select(only=name, protocol="graphpipe"))
        finally:
            await target.close()
    return outcome


@pytest.mark.parametrize("name", sorted({name for _, name in EVERY}))
async def test_a_right_peer_passes(name: str) -> None:
    """Without faults the peer passes each scenario used below, so that a failure there is the fault's."""
    outcome = await judged(name)
    assert outcome.verdict is Verdict.PASS, outcome.failure or outcome.reason


@pytest.mark.parametrize(("fault", "name"), EVERY)
async def test_a_fault_is_caught(fault: str, name: str) -> None:
    """A peer with one fault fails the scenario that judges it, and the failure says what was met and expected."""
    outcome = await judged(name, fault)
    assert outcome.verdict is Verdict.FAIL, outcome.reason
    assert outcome.failure is not None
    assert outcome.failure.met
    assert outcome.failure.expected
    assert outcome.failure.sent


async def test_a_missing_model_is_not_provided() -> None:
    """A model that the peer does not serve is neither passed nor failed."""
    outcome = await judged("outputs_that_are_no_tensors")
    assert outcome.verdict is Verdict.NOT_PROVIDED
    assert outcome.reason == "model odd"
