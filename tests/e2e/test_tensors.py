"""Arrays over riff, Evergreen and HTTP, against a real server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import httpx
import numpy as np
import pytest

from invoker.client import CallFailed, EvergreenSession, RiffClient
from invoker.codecs.tensor import TENSOR, message_of, tensor_in
from invoker.message import EMPTY, Message
from invoker.tensors import write_tensor
from invoker.tensors.arrays import to_tensor
from tests.serving import Served, serving

NPY = "application/x-npy"
LARGE = np.arange(800_000, dtype="<f4").reshape(1000, 800)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving("tests.e2e.tensor_functions") as one:
        yield one


def table(value: object) -> Message[bytes]:
    """A value as a tensor in a buffer of its own."""
    return Message(bytes(write_tensor(to_tensor(value))), EMPTY, TENSOR)


@pytest.mark.parametrize("media_type", [TENSOR, NPY])
async def test_arrays_are_streamed_by_riff(served: Served, media_type: str) -> None:
    """Each is answered when it comes, however large; in the form that the caller asks for."""
    async with RiffClient(served.grpc) as client:
        batches = [np.float32([[1, 2]]), LARGE, np.zeros((0, 3), "f4")]
        call = client.invoke([batches], accept=media_type, content_type=media_type, function="double")
        found = [one async for one in call]
    assert [one.media_type for one in found] == [media_type] * 3
    for one, batch in zip(found, batches, strict=True):
        assert one.value.dtype == np.float32
        assert np.array_equal(one.value, batch * 2)
        assert np.shares_memory(one.value, np.frombuffer(one.payload, "u1")) or not one.value.size


async def test_both_forms_and_lists_reach_one_function(served: Served) -> None:
    """A table, bare elements, a file of numpy, JSON."""
    raw = message_of(to_tensor(np.int16([[3], [4]])))
    inputs = [Message(bytes(raw.payload), EMPTY, raw.media_type)], [table([10.5])]
    async with RiffClient(served.grpc) as client:
        (found,) = [one async for one in client.invoke(inputs, accept=TENSOR, function="combine")]
        assert found.value.tolist() == [[13.5], [14.5]]
        lists = client.invoke([[[1, 2]], [[3, 4]]], function="combine")
        assert [one.value async for one in lists] == [[4.0, 6.0]]


async def test_arrays_are_nodes_of_evergreen(served: Served) -> None:
    """Large ones in many fragments; a sequence of them is a stream."""
    async with EvergreenSession(served.grpc, extensions=("accept",)) as session:
        batches = [table(np.float32([1, 2])), table(LARGE)]
        answer = session.act("double", {"batches": batches}, accept={"response": TENSOR})
        small, large = await answer.items()
        assert small.tolist() == [2.0, 4.0]
        assert np.array_equal(large, LARGE * 2)
        texts = session.act("words", {"texts": table([b"a\0", "é"])})
        assert await texts.items() == [[2, 2]]


def test_arrays_are_posted() -> None:
    """As tensors, or as JSON by anyone with curl."""
    payload = table(np.float32([1, 2])).payload
    with serving("tests.e2e.tensor_functions:double") as one:
        url = f"http://{one.http}/"
        got = httpx.post(
            url, content=payload, headers={"Content-Type": TENSOR, "Accept": "application/json"}, timeout=20
        )
        assert (got.status_code, got.json()) == (200, [2.0, 4.0])
        back = httpx.post(url, json=[[1, 2]], headers={"Accept": TENSOR}, timeout=20)
        assert (back.status_code, back.headers["content-type"]) == (200, TENSOR)
        assert tensor_in(Message(back.content, EMPTY, TENSOR)) == to_tensor(np.float32([[2, 4]]))


async def test_another_type_fails_the_call(served: Served) -> None:
    """Nothing is cast."""
    async with RiffClient(served.grpc) as client:
        with pytest.raises(CallFailed, match="it is Float64, not float32"):
            _ = [one async for one in client.invoke([[table([1.5])]], function="double")]


def test_other_functions_do_not_import_numpy() -> None:
    """Neither to be served nor to be ready."""
    code = (
        "import sys; from invoker.cli.main import build; from invoker.settings import Config\n"
        "build(Config(), 'functions.square:square')\n"
        "print('numpy' in sys.modules, any(one.startswith('invoker.tensors.m') for one in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["False", "False"], done.stderr
