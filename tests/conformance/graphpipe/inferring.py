"""One inference of the peer: which tensor is for which input, running the body, and writing what came of it."""

from __future__ import annotations

import asyncio
import struct
import traceback
from collections.abc import Mapping
from contextlib import aclosing, nullcontext
from typing import TYPE_CHECKING

from invoker_conformance.graphpipe.build import Field, Number, References, Table, Vector, assemble, text
from invoker_conformance.graphpipe.requests import tensor_table
from invoker_conformance.graphpipe.tensors import FLOAT16, Tensor
from tests.conformance.graphpipe.flat import Infer, Refused
from tests.conformance.graphpipe.named import FUNCTION, MODELS, OUTPUT, Model, Port, Run

if TYPE_CHECKING:
    from tests.conformance.graphpipe.peer import Peer

UNKNOWN_INPUT, UNKNOWN_OUTPUT, DUPLICATE, MISSING, MISMATCH, SHAPE = 4, 5, 6, 7, 8, 9
BATCH_S = 0.3


async def inferred(peer: Peer, name: str, request: Infer, headers: Mapping[str, str]) -> list[Tensor]:
    """The tensors that a request is answered with."""
    model = MODELS[name]
    given = bound(peer, model, request)
    wanted = wanted_outputs(peer, model, request)
    run = Run(peer.has, peer.marks, request.config, {model.outputs[each].name for each in wanted}, headers, peer.kept)
    if model.batch_max > 1:
        outputs = await peer.batches.ask(model, run, given)
    elif model.is_by_row:
        outputs = await by_row(model, run, given)
    else:
        outputs = await values_of(model, run, given)
    return [outputs[each] for each in wanted]


def bound(peer: Peer, model: Model, request: Infer) -> dict[str, Tensor]:
    """Tensors by the names of their inputs, checked."""
    names = request.names or [""] * len(request.tensors)
    if peer.has("ignores names"):
        names = [""] * len(request.tensors)
    known = {port.name: port for port in model.inputs}
    if not peer.has("knows no aliases"):
        known |= {f"input{at}": port for at, port in enumerate(model.inputs)}
    given: dict[str, Tensor] = {}
    for position, (name, tensor) in enumerate(zip(names, request.tensors, strict=False)):
        port = known.get(name)
        if not name and position < len(model.inputs):
            port = model.inputs[0 if peer.has("binds empty names to the first") else position]
        if port is None and peer.has("ignores surplus tensors"):
            continue
        if port is None:
            raise Refused(UNKNOWN_INPUT, f"no input {name}")
        if port.name in given and not peer.has("last name wins"):
            raise Refused(DUPLICATE, port.name)
        given[port.name] = tensor
        check(peer, port, tensor)
    for port in model.inputs:
        if port.name not in given:
            if port.default is None or peer.has("knows no defaults"):
                raise Refused(MISSING, port.name)
            given[port.name] = port.default
    return given


def check(peer: Peer, port: Port, tensor: Tensor, code: int = 0) -> None:
    """A tensor is of the declared type and shape."""
    if port.type not in (0, tensor.type) and not peer.has("casts"):
        raise Refused(code or MISMATCH, f"{port.name} is of type {tensor.type}")
    if port.shape is None or peer.has("takes any shape"):
        return
    shape = tensor.shape or ()
    is_fit = all(want in (-1, size) for want, size in zip(port.shape, shape, strict=False))
    if len(shape) != len(port.shape) or not is_fit:
        raise Refused(code or SHAPE, f"{port.name} has the shape {shape}")


def wanted_outputs(peer: Peer, model: Model, request: Infer) -> list[int]:
    """Indexes of the outputs that are wanted."""
    known = {port.name: at for at, port in enumerate(model.outputs)}
    known |= {f"output{at}": at for at in range(len(model.outputs))}
    if peer.has("takes empty names of outputs"):
        known[""] = 0
    if any(name not in known for name in request.outputs):
        raise Refused(UNKNOWN_OUTPUT, f"{request.outputs}")
    wanted = [known[name] for name in request.outputs] or list(range(len(model.outputs)))
    return sorted(set(wanted)) if peer.has("orders outputs itself") else wanted


async def values_of(model: Model, run: Run, given: Mapping[str, Tensor]) -> dict[int, Tensor]:
    """Outputs by index."""
    found: dict[int, list[Tensor]] = {}
    try:
        values = model.body(run, **given)
        run.kept.append(values if run.has("leaves functions open") else None)
        async with nullcontext() if run.kept[-1] else aclosing(values):
            async for index, tensor in values:
                shape = model.outputs[index].shape
                is_joined = run.has("joins all") or (bool(shape) and shape is not None and shape[0] == -1)
                if index in found and run.has("takes the first value"):
                    break
                if index in found and not is_joined:
                    raise Refused(OUTPUT, "one value too many")
                found.setdefault(index, []).append(tensor)
    except Refused:
        raise
    except Exception as error:
        told = traceback.format_exc() if run.has("leaks tracebacks") else f"{type(error).__name__}: {error}"
        raise Refused(FUNCTION, told) from None
    missing = [port.name for at, port in enumerate(model.outputs) if port.name in run.wanted and at not in found]
    if missing:
        raise Refused(OUTPUT, f"nothing for {missing}")
    outputs = {index: joined(tensors) for index, tensors in found.items()}
    for index, tensor in outputs.items():
        if not (run.has("breaks promises") or run.has("joins all")):
            check(Strict(), model.outputs[index], tensor, OUTPUT)
    return outputs


class Strict:
    """A peer without faults."""

    def has(self, fault: str) -> bool:
        """Nothing."""
        return False


def joined(tensors: list[Tensor]) -> Tensor:
    """One behind the other along the first size."""
    first = tensors[0]
    if len(tensors) == 1:
        return first
    assert first.shape is not None
    rows = sum((tensor.shape or (0,))[0] for tensor in tensors)
    return Tensor(first.type, (rows, *first.shape[1:]), b"".join(tensor.data for tensor in tensors))


async def by_row(model: Model, run: Run, given: Mapping[str, Tensor]) -> dict[int, Tensor]:
    """Outputs of a function that is fed row by row."""
    ((name, batch),) = given.items()
    assert batch.shape is not None
    size = 4 * batch.shape[1]
    rows = []
    for at in range(batch.shape[0]):
        row = Tensor(batch.type, batch.shape[1:], batch.data[size * at : size * (at + 1)])
        async for _, tensor in model.body(run, **{name: row}):
            rows.append(tensor.data)
    if len(rows) != batch.shape[0] and not run.has("loses rows"):
        raise Refused(OUTPUT, f"{len(rows)} rows of {batch.shape[0]}")
    return {0: Tensor(batch.type, (len(rows), *batch.shape[1:]), b"".join(rows))}


class Batches:
    """Requests that come together."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.waiting: dict[object, list[tuple[Tensor, asyncio.Future[Tensor]]]] = {}

    async def ask(self, model: Model, run: Run, given: Mapping[str, Tensor]) -> dict[int, Tensor]:
        """Outputs of one request, which may run with others."""
        ((_, batch),) = given.items()
        rows = (batch.shape or (0,))[0]
        kind = "any" if self.peer.has("joins anything") else (run.config, frozenset(run.wanted), batch.shape)
        if rows >= model.batch_max:
            return await values_of(model, run, given)
        several = self.waiting.setdefault(kind, [])
        mine: asyncio.Future[Tensor] = asyncio.get_running_loop().create_future()
        several.append((batch, mine))
        if len(several) < model.batch_max:
            await asyncio.wait((mine,), timeout=BATCH_S)
        if not mine.done():
            self.waiting.pop(kind, None)
            await self._run(model, run, several)
        return {0: await mine}

    async def _run(self, model: Model, run: Run, several: list[tuple[Tensor, asyncio.Future[Tensor]]]) -> None:
        try:
            made = await values_of(model, run, {"pairs": joined([batch for batch, _ in several])})
            data = made[0].data
            for at, (batch, done) in enumerate(several):
                size = len(batch.data)
                done.set_result(Tensor(batch.type, batch.shape, data[size * at : size * (at + 1)]))
        except Refused as refused:
            for batch, done in several:
                try:
                    if self.peer.has("fails the whole batch"):
                        raise refused
                    done.set_result((await values_of(model, run, {"pairs": batch}))[0])
                except Refused as alone:
                    done.set_exception(alone)


def tensors_buffer(peer: Peer, tensors: list[Tensor]) -> bytes:
    """An InferResponse with tensors."""
    if peer.has("quiets NaN"):
        tensors = [_quiet(each) for each in tensors]
    if peer.has("writes no shape for scalars"):
        tensors = [Tensor(each.type, each.shape or None, each.data, each.strings) for each in tensors]
    fields: dict[int, Field] = {0: References([tensor_table(each) for each in tensors])}
    return bytes(assemble(Table(fields), is_odd=peer.has("writes odd positions")))


def _quiet(tensor: Tensor) -> Tensor:
    if tensor.type != FLOAT16:
        return tensor
    values = struct.unpack(f"<{tensor.count}e", tensor.data)
    return Tensor(FLOAT16, tensor.shape, struct.pack(f"<{tensor.count}e", *(float(str(value)) for value in values)))


def error_buffer(peer: Peer, refused: Refused) -> bytes:
    """An InferResponse with an error."""
    message = f"Peer: {refused}"
    if not peer.has("tells all"):
        message = message.encode()[:4096].decode(errors="ignore")
    code = 42 if peer.has("has its own codes") else refused.code
    fields: dict[int, Field] = {1: References([Table({0: Number("q", code), 1: text(message)})])}
    if peer.has("sends tensors with errors"):
        fields[0] = References([tensor_table(Tensor(1, (1,), b"\0"))])
    return bytes(assemble(Table(fields)))


def metadata_buffer(peer: Peer, name: str) -> bytes:
    """A MetadataResponse."""
    model = MODELS[name]
    fields: dict[int, Field] = {0: text(name), 2: text("peer/1"), 3: text(model.about)}
    for slot, ports in ((4, model.inputs), (5, model.outputs)):
        several = list(reversed(ports)) if peer.has("reverses") else list(ports)
        if several or not peer.has("leaves out empty vectors"):
            fields[slot] = References([_port_table(peer, port) for port in several])
    return bytes(assemble(Table(fields)))


def _port_table(peer: Peer, port: Port) -> Table:
    shape = [0 if size < 0 and peer.has("tells no -1") else size for size in port.shape or ()]
    return Table({0: text(port.name), 2: Vector(struct.pack(f"<{len(shape)}q", *shape), 8), 3: Number("B", port.type)})
