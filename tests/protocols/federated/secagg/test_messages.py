"""What the server says: `invoker.protocols.federated.secagg.messages`."""

from __future__ import annotations

from invoker.protocols.federated.secagg import messages


def test_F117_an_entry_of_a_sender_that_is_dead_is_empty() -> None:
    """Entry i is what device i has made for this one."""
    shares = {0: [b"", b"01", b"02"], 2: [b"20", b"21", b""]}
    for index, entries in enumerate(([b"", b"", b"20"], [b"01", b"", b"21"], [b"02", b"", b""])):
        request = messages.masked_input_request(shares, index, 3).masked_input_request
        assert list(request.encrypted_key_shares) == entries


def test_F120_devices_are_numbered_from_one() -> None:
    """On the wire only."""
    assert list(messages.unmasking_request([0, 4]).unmasking_request.dead_3_client_ids) == [1, 5]


def test_F123_early_success_is_an_abort_that_says_so() -> None:
    """Any other abort is a failure."""
    assert messages.early_success().abort.early_success
    assert not messages.abort("why").abort.early_success
    assert messages.abort("why").abort.diagnostic_info == "why"
