"""Tests of `invoker.protocols.federated.messages`."""

import msgspec

from invoker.protocols.federated.messages import Accepted, Blob, Checkin, Offer, Resource


def test_what_both_sides_share_cannot_be_changed() -> None:
    """An offer is told to every client of a round, so none of its sessions may change it."""
    offer = Offer("phase", "task", Blob(b"plan"), Blob(b"model", Resource("https://a/b", "https://a/b.gz")))
    for value, name in ((offer, "task"), (offer.plan, "data"), (Accepted(offer), "offer"), (Checkin("p"), "weights")):
        try:
            setattr(value, name, None)
        except AttributeError:
            continue
        raise AssertionError(f"{type(value).__name__}.{name} was changed")


def test_a_client_that_says_nothing_can_do_nothing() -> None:
    """A checkin without protocol options offers neither chunks nor downloads nor secure aggregation."""
    can = Checkin("p").can
    assert not any(msgspec.structs.asdict(can).values())
