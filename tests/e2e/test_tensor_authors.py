"""What authors may write and what clients get of it: several outputs, wanted names, casting, declarations."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import numpy as np
import pytest

from invoker.client import CallFailed, EvergreenSession, GraphPipe, GraphPipeError, RiffClient
from invoker.codecs.tensor import TENSOR, tensor_in
from invoker.tensors import Code, IOMetadata, TensorType
from invoker.testing import Harness
from tests.e2e import author_functions as functions
from tests.protocols.graphpipe.asking import ask, received, values
from tests.serving import serving
from tests.transports.models import inferring

X = np.float32([[1, 5, 0], [9, 2, 1]])
SUMS, BEST = [6, 12], [1, 0]


async def infer(function: Any, *inputs: Any, **more: Any) -> list[Any]:
    """Ask a model of this function alone; its outputs as lists."""
    async with inferring(function) as one:
        return values(await one.infer(one.first, bytearray(ask(*inputs, **more)), transport="test"))


async def refused(function: Any, *inputs: Any, **more: Any) -> list[tuple[int, str]]:
    """Likewise; its errors."""
    async with inferring(function) as one:
        response = await one.infer(one.first, bytearray(ask(*inputs, **more)), transport="test")
        return [(one.code, one.message) for one in received(response).errors]


@pytest.mark.parametrize(
    "name", ["split", "found", "named", "later", "streamed", "astreamed", "gathered", "overlapping", "said"]
)
async def test_G066_G070_a_tuple_or_dict_of_arrays_is_several_outputs(name: str) -> None:
    """Whoever returns it; by position or by name."""
    function = getattr(functions, name)
    assert await infer(function, X) == [SUMS, BEST]
    async with inferring(function) as one:
        names = [port.name for port in one.first.outputs]
    assert names == (["output0", "output1"] if name in ("split", "messages") else ["sums", "best"])
    assert await infer(function, X, output_names=(names[1], "output0", names[1])) == [BEST, SUMS, BEST]


async def test_G066_parts_of_other_shapes() -> None:
    """Dicts where a tuple is as good, plain values beside arrays, one part, rows."""
    assert await infer(functions.said, X, np.int64(1)) == [SUMS, BEST]
    assert await infer(functions.mixed, X) == [SUMS, 2, b"three"]
    assert await infer(functions.alone, X, output_names=("sums",)) == [SUMS]
    assert await infer(functions.by_row, X) == [SUMS, BEST]
    assert await infer(functions.by_row, X[:0]) == [[], []]


async def test_G087_types_of_parts_are_metadata() -> None:
    """As those of several inputs are."""
    for function in (functions.found, functions.named, functions.streamed):
        async with inferring(function) as one:
            assert one.first.metadata.outputs == (
                IOMetadata("sums", "[batch]", (-1,), TensorType.FLOAT32),
                IOMetadata("best", "where the largest is [batch]", (-1,), TensorType.INT64),
            )


async def test_G076_G066_batches_are_parted_in_both_ways() -> None:
    """Each request gets its rows of each output; other types are other batches."""
    functions.asked.clear()
    async with inferring(functions.batched) as one:
        requests = [bytearray(ask(row)) for row in (X[:1], X, X[1:])]
        answers = await asyncio.gather(*(one.infer(one.first, each, transport="test") for each in requests))
    assert [values(each) for each in answers] == [[SUMS[:1], BEST[:1]], [SUMS, BEST], [SUMS[1:], BEST[1:]]]
    assert functions.asked == [4]


@pytest.mark.parametrize(
    ("how", "text"),
    [
        (0, "returned a tuple of 3 for its outputs sums, best; return a tuple of 2"),
        (1, "returned ndarray for its outputs sums, best"),
        (2, "returned a dict with 'worst'; its outputs are sums, best"),
        (3, "returned a dict without its output 'sums'"),
        (4, "returned NoneType"),
    ],
)
async def test_G066_a_value_without_the_promised_parts_is_E18(how: int, text: str) -> None:
    """The text says what there was."""
    ((code, message),) = await refused(functions.wrong, X, np.int64(how))
    assert code == Code.BAD_OUTPUT
    assert text in message


async def test_G060_a_function_is_given_the_names_that_are_wanted() -> None:
    """Each once and in the order of the outputs, so that a tuple of these can be no other."""
    functions.asked.clear()
    for function in (functions.some, functions.some_named):
        assert await infer(function, X, output_names=("best",)) == [BEST]
        assert await infer(function, X, output_names=("output1", "sums", "best")) == [BEST, SUMS, BEST]
        assert await infer(function, X) == [SUMS, BEST]
    assert functions.asked == [("best",), ("sums", "best"), ("sums", "best"), ["best"], *[["sums", "best"]] * 2]
    assert await infer(functions.bare, X, output_names=("sums",)) == [SUMS]
    assert await infer(functions.bare, X, output_names=("best",)) == [BEST]


async def test_G060_the_parameter_of_names_is_no_input() -> None:
    """Unless its author names it as one."""
    async with inferring(functions.some_named, functions.is_input) as one:
        assert [[port.name for port in model.inputs] for model in one.models.values()] == [["x"], ["x", "output_names"]]
    assert (await refused(functions.some, X, np.array(["sums"]), input_names=("x", "output_names")))[0][0] == 4
    assert await infer(functions.is_input, X, np.array(["a", "b"])) == [[b"a", b"b"]]


async def test_G068_declared_without_annotations() -> None:
    """It is the same in metadata and in what is checked."""
    async with inferring(functions.scaled) as one:
        assert one.first.metadata.inputs == (
            IOMetadata("x", "one row a sample [batch, 3]", (-1, 3), TensorType.FLOAT32),
            IOMetadata("by", "", (), TensorType.FLOAT32),
        )
    assert await infer(functions.scaled, X, np.float32(2)) == [(X * 2).tolist()]
    assert (await refused(functions.scaled, X[:, :2], np.float32(2)))[0][0] == Code.SHAPE
    assert (await refused(functions.scaled, X.astype("f8"), np.float32(2)))[0][0] == Code.TYPE_MISMATCH


@pytest.mark.parametrize("x", [X.astype("f8"), X.astype("i4"), X.astype("u1"), X.astype("f2")])
async def test_G061_GT38_other_types_are_cast_where_the_author_lets_them(x: Any) -> None:
    """Those that numpy's rule of the same kind allows."""
    assert await infer(functions.casting, x, np.int64(1)) == [(X + 1).tolist()]
    ((code, message),) = await refused(functions.split, x)
    assert code == Code.TYPE_MISMATCH
    assert message.endswith("and Float32 is declared; nothing is cast, unless the function has "
                            "the option graphpipe.Casting(inputs='same_kind')")  # fmt: skip


async def test_G061_values_that_do_not_fit_are_E8() -> None:
    """Nothing wraps and nothing becomes infinite."""
    for x, n, text in ((X, np.int64(128), "128 cannot be int8"), (np.full((1, 3), 1e300), np.int8(1), "out of range")):
        ((code, message),) = await refused(functions.casting, x, n)
        assert code == Code.TYPE_MISMATCH
        assert text in message
    (error,) = await refused(functions.casting, X, np.float32(1))
    assert error == (Code.TYPE_MISMATCH, "GraphPipe: Type Mismatch: input 'n' is Float32, and Int8 is declared")
    assert (await refused(functions.casting, X, np.array(["1"])))[0][0] == Code.TYPE_MISMATCH


async def test_G061_what_is_given_is_cast_where_the_author_wants_it() -> None:
    """By GraphPipe and by riff; who does not ask for it learns how to."""
    async with inferring(functions.promoted) as one:
        assert one.first.metadata.outputs[0].type == TensorType.FLOAT32
    assert await infer(functions.promoted, X) == [(X * 2).tolist()]
    assert await infer(functions.promoted_parts, X) == [X.tolist(), [1, 2]]
    ((code, message),) = await refused(functions.not_cast, X)
    assert code == Code.BAD_OUTPUT
    assert message.endswith("return array.astype('float32'), or use the option graphpipe.Casting(outputs='same_kind')")
    ((_, message),) = await refused(functions.promoted, np.full((1, 3), 3e38, "f4"))
    assert message.endswith("is out of range for float32")
    for check_outputs in (True, False):
        harness = Harness(functions.promoted, check_outputs=check_outputs)
        ((_, made),) = (await harness.ainvoke([X], accept=TENSOR)).frames
        assert tensor_in(made).type is TensorType.FLOAT32


async def test_G061_G068_G087_all_of_it_at_once() -> None:
    """Cast, declared without annotations, with a version."""
    assert await infer(functions.half, np.float64([1, 2])) == [[1, 2]]
    async with inferring(functions.half) as one:
        assert one.first.metadata.version == "1.2"
        assert one.first.metadata.inputs[0].type == TensorType.FLOAT16


async def test_G084_each_wrong_input_has_its_error(caplog: pytest.LogCaptureFixture) -> None:
    """The first is the one that counts, and that the log tells."""
    caplog.set_level("INFO")
    errors = await refused(functions.casting, X[:, :2], np.float32(1))
    assert [code for code, _ in errors] == [Code.SHAPE, Code.TYPE_MISMATCH]
    assert "'x'" in errors[0][1]
    assert "'n'" in errors[1][1]
    (line,) = [vars(one) for one in caplog.records if one.message == "test answered"]
    assert (line["code"], line["request"]) == (Code.SHAPE, "infer x:Float32[2, 2] n:Float32[]")


async def test_G062_declared_shapes_hold_at_every_transport() -> None:
    """By riff, Evergreen and plain HTTP as by GraphPipe, before the function runs."""
    problem = r"it has the shape \[2\], and \[batch, 3\] is declared"
    with serving("tests.e2e.author_functions") as served:
        async with RiffClient(served.grpc) as client:
            with pytest.raises(CallFailed, match=f"input #0 'x': {problem}"):
                _ = [one async for one in client.invoke([[[1.0, 2.0]]], function="found")]
        async with EvergreenSession(served.grpc) as session:
            with pytest.raises(CallFailed, match=f"'x'.*: {problem}"):
                await session.act("found", {"x": [[1.0, 2.0]]}).items()  # a list is a sequence of values
        async with httpx.AsyncClient() as http:
            answer = await http.post(f"http://{served.http}/", json=[1, 2], headers={"Invoker-Function": "found"})
            assert answer.status_code >= 400
            assert re.search(problem, answer.text)
        with GraphPipe(f"http://{served.http}/graphpipe/found") as model, pytest.raises(GraphPipeError, match=problem):
            model.infer(np.float32([1, 2]))


async def test_one_value_stays_one_where_one_output_is_asked_for() -> None:
    """R-042: parts are for those who ask for them, over riff as over GraphPipe; HTTP gets the whole."""
    with serving("tests.e2e.author_functions") as served:
        async with RiffClient(served.grpc) as client:
            whole = [one.value async for one in client.invoke([[X.tolist()]], function="found")]
            assert whole == [[SUMS, BEST]]
            accept = [TENSOR, TENSOR]
            parts = [(one.index, one.value.tolist()) async for one in client.invoke(
                [[X]], accept=accept, content_type=TENSOR, function="found"
            )]  # fmt: skip
            assert sorted(parts) == [(0, SUMS), (1, BEST)]
            stream = client.invoke([[X, X[:1]]], accept=accept, content_type=TENSOR, function="streamed")
            parts = [(one.index, one.value.tolist()) async for one in stream]
            assert sorted(parts) == [(0, SUMS[:1]), (0, SUMS), (1, BEST[:1]), (1, BEST)]
            names = client.invoke([[X.tolist()]], function="some_named")
            assert [one.value async for one in names] == [{"sums": SUMS, "best": BEST}]
        async with httpx.AsyncClient() as http:
            for name, expected in (("found", [SUMS, BEST]), ("some_named", {"sums": SUMS, "best": BEST})):
                headers = {"Invoker-Function": name, "Accept": "application/json"}
                answer = await http.post(f"http://{served.http}/", json=X.tolist(), headers=headers)
                assert answer.json() == expected
        with GraphPipe(f"http://{served.http}/graphpipe/found") as model:
            assert {name: one.tolist() for name, one in model.infer(X, outputs=["best", "sums"]).items()} == {
                "best": BEST,
                "sums": SUMS,
            }
            with pytest.raises(GraphPipeError) as caught:
                model.infer({"y": X, "z": X})
            assert [one.code for one in caught.value.errors] == [Code.UNKNOWN_INPUT] * 2
