"""`Form`: a large answer that is the same for all clients of a round which have the same capabilities.

Such an answer may contain a model of many MiB. It is made and compressed once, its bytes are kept as long as the offer,
and every conversation sends chunks of the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

import msgspec

from invoker._pb.federated import federated_api_pb2 as pb
from invoker.codecs.chunks import Packed, Terms
from invoker.protocols.federated import answers
from invoker.protocols.federated.messages import Capabilities, Eligibility, Offer
from invoker.protocols.federated.negotiation import options_for


class Form(msgspec.Struct, frozen=True):
    """An answer that may already have been made and compressed.

    Attributes:
        kept: A dict with the bytes of all forms, by key.
        key: The key of this form.
        build: Makes the answer.
    """

    kept: dict[Hashable, Packed]
    key: Hashable
    build: Callable[[], pb.ServerStreamMessage]

    @property
    def packed(self) -> Packed | None:
        """The bytes, if they have already been made."""
        return self.kept.get(self.key)

    def keep(self, packed: Packed) -> Packed:
        """Keep the bytes for later conversations, unless bytes are kept already; returns the kept bytes."""
        return self.kept.setdefault(self.key, packed)


def form_of_offer(offer: Offer, can: Capabilities, terms: Terms) -> Form:
    """The acceptance of a client (F-047, F-134)."""
    return Form(offer.forms, (terms, can.http, can.http and can.gzip), partial(_accepted, offer, can, terms))


def form_of_eligibility(task: Eligibility, can: Capabilities, terms: Terms) -> Form:
    """The eligibility task for a client (F-040)."""
    by_http = can.eligibility_http
    return Form(task.forms, (terms, by_http, by_http and can.gzip), partial(_tried, task, can, terms))


def _accepted(offer: Offer, can: Capabilities, terms: Terms) -> pb.ServerStreamMessage:
    message = pb.ServerStreamMessage()
    response = message.checkin_response
    response.protocol_options_response.CopyFrom(options_for(terms, secagg=offer.secagg is not None))
    answers.fill_acceptance(response.acceptance_info, offer, can)
    return message


def _tried(task: Eligibility, can: Capabilities, terms: Terms) -> pb.ServerStreamMessage:
    message = pb.ServerStreamMessage()
    response = message.eligibility_eval_checkin_response
    response.protocol_options_response.CopyFrom(options_for(terms))
    answers.fill_eligibility(response.eligibility_eval_payload, task, can)
    return message
