"""`InferencePlan`: a cached result of parsing and checking a request, which is valid for similar requests.

Theory. Clients often send requests that differ only in the elements of tensors. Parsing, the binding of tensors to
inputs, the requested outputs, and the checks of types, shapes and sizes do not depend on the elements
(`invoker.tensors.skeleton` says when that is proven). So a plan keeps the *skeleton* of a valid request; if another
request fits the skeleton, only its elements have to be passed on. A request that is refused makes no plan, so each
error is found and reported again.

Plans are kept in their model, a few for each size of requests. Since peers choose the requests, `Cache` limits the
memory of the plans.
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
"""The memory of a plan in addition to its skeleton, in bytes."""


_END: Final = EndInput(ID)
_NOTHING: Final = memoryview(b"")

Buffer: TypeAlias = bytes | bytearray | memoryview


class Found(msgspec.Struct, frozen=True):
    """The result of parsing a request: its tensors, each with its input, and the limit that was applied."""

    tensors: Sequence[Tensor]
    given: Sequence[GivenInput]
    limit_bytes: int


class InferencePlan(msgspec.Struct, frozen=True):
    """The plan for all requests with one skeleton.

    Attributes:
        skeleton: The skeleton of the requests.
        limit_bytes: The limit that was applied to the first request.
        checked: The first request without its elements; its only step opens the invocation.
        inputs: The inputs in declared order, each with the position of its elements in a request.
        media_types: The media types of the messages for the inputs; None: an input needs a conversion.
    """

    skeleton: Skeleton
    limit_bytes: int
    checked: CheckedRequest
    inputs: tuple[tuple[GivenInput, Span], ...]
    media_types: tuple[str, ...] | None

    def again(self, buffer: Buffer, metadata: Headers, weigh: Weigh | None = None) -> CheckedRequest:
        """Check a further request that fits the skeleton; see `find`.

        Args:
            buffer: The request.
            metadata: The metadata of the conversation.
            weigh: See `prepare`.

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
    """The plan that fits a request; None if there is none, or if the buffer is a view, which is never cached."""
    if type(buffer) is not bytearray and type(buffer) is not bytes:
        return None
    known: tuple[InferencePlan, ...] = model.plans.find(len(buffer)) or ()
    for one in known:
        if one.skeleton.fits(buffer) and one.limit_bytes == limit_bytes:
            return one
    return None


def learn(model: Model, buffer: Buffer, trace: Trace, found: Found, checked: CheckedRequest) -> CheckedRequest:
    """Make a plan from a valid request, and let layouts of answers be cached.

    Args:
        model: The model of the request.
        buffer: The request.
        trace: The trace of parsing.
        found: The result of parsing.
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
