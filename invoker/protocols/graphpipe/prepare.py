"""`prepare`: parses a request, and does all checks that are possible before the function runs.

A request that differs from an earlier one only in its elements is not parsed again; see
`invoker.protocols.graphpipe.plans`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from invoker.core.steps import CallStep, Close, EndInput, Feed, Open, Send
from invoker.message import EMPTY, Headers
from invoker.protocols.graphpipe.answer import Reply, refusal
from invoker.protocols.graphpipe.batch import alike, merged
from invoker.protocols.graphpipe.binding import GivenInput, admit, fitting, given_inputs, wanted_outputs
from invoker.protocols.graphpipe.checked import HELD_PER_LIMIT, ID, CheckedRequest, messages_for
from invoker.protocols.graphpipe.config import RequestConfig
from invoker.protocols.graphpipe.errors import explained
from invoker.protocols.graphpipe.model import Model
from invoker.protocols.graphpipe.plans import Buffer, Found, find, learn
from invoker.protocols.graphpipe.rows import count_rows
from invoker.protocols.graphpipe.telling import tell_asked, tell_given
from invoker.tensors import (
    LIMIT_BYTES,
    Code,
    GraphPipeError,
    InferRequest,
    MetadataRequest,
    Trace,
    read_request,
    too_large,
)
from invoker.tensors.flat import Weigh


class Resolved(msgspec.Struct, frozen=True):
    """A request after binding: inputs, requested outputs, config, values of named sizes, and requested parts."""

    given: tuple[GivenInput, ...]
    wanted: tuple[int, ...]
    config: bytes
    known: dict[str, int]
    parts: tuple[int, ...] | None = None


def prepare(
    model: Model,
    buffer: Buffer,
    *,
    limit_bytes: int = LIMIT_BYTES,
    metadata: Headers = EMPTY,
    weigh: Weigh | None = None,
) -> CheckedRequest:
    """Parse and check a request.

    Args:
        model: The model of the request.
        buffer: Exactly one Request; tensors are views on it, so it must not be changed until the response is made.
        limit_bytes: The limit of the request, and also of all messages that are fed to the function.
        metadata: The metadata of the conversation, for the function's `Context`.
        weigh: Called with the size of copies of elements before they are made; raises Overloaded if they are too large.
    """
    if (plan := find(model, buffer, limit_bytes)) is not None:
        with suppress(GraphPipeError):  # after an error the request is parsed again, to report all errors
            return plan.again(buffer, metadata, weigh)
    request, trace = None, Trace()
    try:
        request = read_request(buffer, limit_bytes, weigh, trace=trace)
        if isinstance(request, MetadataRequest):
            if not model.is_told:
                error = GraphPipeError(Code.REQUEST_TYPE, "metadata is not served here; an InferRequest infers")
                return refused(explained(error, metadata), about=tell_asked(request, model))
            response = Reply((model.metadata_buffer,), len(model.metadata_buffer))
            return CheckedRequest((Send(response), Close()), about=tell_asked(request, model))
        resolved = _resolved(model, request)
        checked = _planned(model, resolved, limit_bytes, metadata, weigh)
        return learn(model, buffer, trace, Found(request.tensors, resolved.given, limit_bytes), checked)
    except GraphPipeError as error:
        return refused(explained(error, metadata), about=tell_asked(request, model))


def refused(error: GraphPipeError, *, about: str = "nothing") -> CheckedRequest:
    """The result for a refused request; the error's traceback is dropped, since it refers to the buffer."""
    bare = error.bare
    return CheckedRequest((Send(refusal(bare)), Close(bare)), about=about)


def joint(model: Model, several: Sequence[CheckedRequest], *, limit_bytes: int = LIMIT_BYTES) -> CheckedRequest:
    """Join compatible requests into one (G-076).

    Raises:
        GraphPipeError: The inputs are too large in total (E13), or do not match their declarations.
    """
    first = several[0]
    total = sum(given.tensor.size for one in several for given in one.given)
    if total > limit_bytes:  # refuses before the tensors are copied
        raise too_large("together the inputs have", total, limit_bytes)
    known: dict[str, int] = {}
    given = merged([one.given for one in several])
    for one in given:
        fitting(one.port, one.tensor, f"input '{one.port.name}'", known)
    return _planned(model, Resolved(given, first.wanted, first.config, known, first.parts), limit_bytes, EMPTY)


def _resolved(model: Model, request: InferRequest) -> Resolved:
    known: dict[str, int] = {}
    given = given_inputs(model, request, known)
    wanted, parts = wanted_outputs(model, request), None
    if model.is_undeclared:  # the undeclared output may consist of several parts
        wanted, parts = (0,), wanted if request.output_names else None
    return Resolved(given, wanted, request.config, known, parts)


def _planned(
    model: Model, resolved: Resolved, limit_bytes: int, metadata: Headers, weigh: Weigh | None = None
) -> CheckedRequest:
    given, wanted = resolved.given, resolved.wanted
    rows = count_rows(given) if model.by_row else None
    if rows is None:
        admit(given, limit_bytes)
    messages = messages_for(given, limit_bytes, weigh) if rows is None else []
    opened = Open(
        ID,
        model.spec.name,
        tuple(one.media_type for one in model.outputs),
        input_names=tuple(one.port.own for one in given) if model.spec.open_inputs else (),
        output_names=(model.outputs[0].own,) if len(model.spec.call.parts) == 1 else (),
        metadata=metadata,
        bound=tuple(one.port.bound or one.port.own for one in given),
        unwanted=tuple(index for index in range(len(model.outputs)) if index not in wanted),
        configs=(RequestConfig(resolved.config),) if resolved.config else (),
        protocol="graphpipe",
    )
    feeds = (Feed(ID, index, message) for index, message in enumerate(messages))
    steps: tuple[CallStep, ...] = (opened, *feeds, EndInput(ID)) if rows is None else (opened,)
    kind = (
        alike(given, wanted if resolved.parts is None else resolved.parts, resolved.config)
        if model.spec.batching.rows > 1
        else None
    )
    return CheckedRequest(
        steps,
        wanted,
        tuple(model.outputs[index] for index in wanted),
        resolved.known,
        max(HELD_PER_LIMIT * limit_bytes, LIMIT_BYTES),
        given if rows is not None or kind is not None else (),
        rows,
        tell_given(given),
        resolved.config,
        kind,
        tuple((one.port, one.tensor.type, one.tensor.shape) for one in given),
        resolved.parts,
    )
