"""`InferencePlan`: remembers earlier requests, so that a similar one is not read again.

Theory. Clients of a model send the same request again and again, and only the elements of its tensors differ. Whether
its bytes are a request, which input each tensor is for, which outputs are wanted, and whether types, shapes and sizes
are the declared ones: none of this depends on elements (`invoker.tensors.skeleton` says when that is proven). So a plan
keeps the *skeleton* of a valid request. If a request fits it, only its elements need to be passed on. A request that
was refused leaves no plan, so each error is found and reported again.

Plans belong to a model, so they are gone with it. They are kept by the sizes of their requests, a few of each. Peers
choose their requests, so `Cache` bounds the memory of the plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias, cast

import msgspec

from invoker.codecs.tensor import TENSOR, message_of
from invoker.core.steps import EndInput, Feed, Open
from invoker.message import EMPTY, Headers, Message
from invoker.protocols.graphpipe.binding import GivenInput
from invoker.protocols.graphpipe.checked import ID, CheckedRequest, messages_for
from invoker.protocols.graphpipe.config import RequestConfig
from invoker.protocols.graphpipe.layouts import AnswerPlans
from invoker.protocols.graphpipe.model import Model
from invoker.tensors import Skeleton, Span, Tensor, Trace
from invoker.tensors.flat import Weigh

_PER_SIZE: Final = 8
_PLAN_BYTES: Final = 8192
"""Bytes that a plan takes besides its skeleton."""


_END: Final = EndInput(ID)
_NOTHING: Final = memoryview(b"")

Buffer: TypeAlias = bytes | bytearray | memoryview


class Found(msgspec.Struct, frozen=True):
    """The result of reading a request: its tensors, the input of each, and the limit that was applied."""

    tensors: Sequence[Tensor]
    given: Sequence[GivenInput]
    limit_bytes: int


class InferencePlan(msgspec.Struct, frozen=True):
    """The plan for all requests of one skeleton.

    Attributes:
        skeleton: The skeleton of the requests.
        limit_bytes: The limit with which the first request was checked.
        checked: The first request without its elements; its only step opens the invocation.
        inputs: Which input each tensor is for, and where its elements lie in a request, in declared order.
        media_types: The media types in which the function takes the inputs, if none needs a conversion; otherwise None.
    """

    skeleton: Skeleton
    limit_bytes: int
    checked: CheckedRequest
    inputs: tuple[tuple[GivenInput, Span], ...]
    media_types: tuple[str, ...] | None

    def again(self, buffer: Buffer, metadata: Headers, weigh: Weigh | None = None) -> CheckedRequest:
        """Check a request that fits the skeleton; see `find`.

        Args:
            buffer: The request.
            metadata: The metadata of the conversation.
            weigh: As for `prepare`.

        Raises:
            GraphPipeError: A value does not fit its input (E8, E13).
        """
        view, checked = memoryview(buffer).toreadonly(), self.checked
        opened = checked.steps[0]
        assert type(opened) is Open, "a plan is made of a request that opens an invocation"
        if metadata or opened.configs:
            configs = (RequestConfig(checked.config),) if opened.configs else ()
            opened = msgspec.structs.replace(opened, metadata=metadata, configs=configs)
        given: tuple[GivenInput, ...] = ()
        if self.media_types is not None:
            spans = zip(self.inputs, self.media_types, strict=True)
            messages = [Message(cast("bytes", view[start:end]), EMPTY, kind) for (_, (start, end)), kind in spans]
        else:
            given = tuple(_filled(one, view[start:end]) for one, (start, end) in self.inputs)
            messages = messages_for(given, self.limit_bytes, weigh) if checked.rows is None else []
            given = given if checked.keeps_given else ()
        if checked.rows is not None:
            return msgspec.structs.replace(checked, steps=(opened,), given=given)
        feeds = [Feed(ID, index, message) for index, message in enumerate(messages)]
        return msgspec.structs.replace(checked, steps=(opened, *feeds, _END), given=given)


def find(model: Model, buffer: Buffer, limit_bytes: int) -> InferencePlan | None:
    """The plan for a request; None if there is none yet, or if the buffer is a view, which is read each time."""
    if type(buffer) is not bytearray and type(buffer) is not bytes:
        return None
    known: tuple[InferencePlan, ...] = model.plans.find(len(buffer)) or ()
    for one in known:
        if one.skeleton.fits(buffer) and one.limit_bytes == limit_bytes:
            return one
    return None


def learn(model: Model, buffer: Buffer, trace: Trace, found: Found, checked: CheckedRequest) -> CheckedRequest:
    """Make a plan of a request that was found valid, and let its answer be remembered.

    Args:
        model: The model that the request asks.
        buffer: The request.
        trace: The trace of its reading.
        found: The result of that reading.
        checked: The request after its checks.
    """
    if type(buffer) is not bytearray and type(buffer) is not bytes:
        return checked
    skeleton = Skeleton.of(buffer, trace)
    if skeleton is None or len(skeleton.elements) != len(found.tensors):
        return checked
    spans = {id(tensor): span for tensor, span in zip(found.tensors, skeleton.elements, strict=True)}
    inputs = tuple((_filled(one, _NOTHING), spans[id(one.tensor)]) for one in found.given)
    media_types = None
    if not checked.keeps_given and all(one.port.media_type == TENSOR for one in found.given):
        media_types = tuple(message_of(one.tensor).media_type for one in found.given)
    checked = msgspec.structs.replace(checked, answers=None if checked.rows is not None else AnswerPlans())
    bare = msgspec.structs.replace(checked, steps=checked.steps[:1], given=())
    plan = InferencePlan(skeleton, found.limit_bytes, bare, inputs, media_types)
    several = (plan, *(model.plans.find(skeleton.size) or ())[: _PER_SIZE - 1])
    sizes = (_PLAN_BYTES + sum(len(bone) for _, bone in one.skeleton.bones) for one in several)
    model.plans.keep(skeleton.size, several, sum(sizes))
    return checked


def _filled(given: GivenInput, elements: memoryview) -> GivenInput:
    tensor = given.tensor
    return GivenInput(given.port, Tensor(tensor.type, tensor.shape, elements))
