"""The client of models against a real server: the samples, and what docs/how-to/serve-a-tensor-model.md says."""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from invoker.client import AsyncGraphPipe, GraphPipe, GraphPipeError
from invoker.protocols.graphpipe.client import remote
from invoker.tensors import Code, TensorType
from tests.protocols.graphpipe.client.peer import nobody
from tests.serving import Served, serving
from tests.test_howto_tensors import FUNCTIONS, blocks

SETOSA = np.float32([[5.1, 3.5, 1.4, 0.2]])


@pytest.fixture(scope="module")
def iris() -> Iterator[Served]:
    """Serves the regression."""
    with serving("functions.iris:iris") as one:
        yield one


def test_the_regression_is_a_model(iris: Served) -> None:
    """It says what it takes, and takes it by name or bare."""
    with GraphPipe(f"http://{iris.http}/graphpipe") as model:
        described = model.metadata()
        assert described.name == "iris"
        (flowers,) = described.inputs
        assert (flowers.name, flowers.shape, flowers.type) == ("flowers", (-1, 4), TensorType.FLOAT32)
        chances = model.infer(SETOSA)
        assert (chances.dtype, chances.shape) == (np.float32, (1, 3))
        assert chances[0].argmax() == 0
        assert np.array_equal(model.infer({"flowers": SETOSA}, outputs="output0"), chances)
        assert model.infer(np.zeros((0, 4), np.float32)).shape == (0, 3)


def test_refusals_have_their_codes(iris: Served) -> None:
    """And leave the connection as it is."""
    with GraphPipe(f"http://{iris.http}/graphpipe") as model:
        for inputs, code in (
            ([np.zeros((1, 4))], Code.TYPE_MISMATCH),
            ([np.zeros((1, 5), np.float32)], Code.SHAPE),
            ([{"petals": SETOSA}], Code.UNKNOWN_INPUT),
            ([], Code.MISSING_INPUT),
        ):
            with pytest.raises(GraphPipeError) as refused:
                model.infer(*inputs)
            assert (refused.value.code, refused.value.http_status) == (code, 400)
        assert model.infer(SETOSA).shape == (1, 3)


async def test_a_loop_asks_a_model(iris: Served) -> None:
    """Many at once."""
    async with AsyncGraphPipe(f"http://{iris.http}/graphpipe") as model:
        found = [await model.infer(SETOSA) for _ in range(3)]
    assert all(np.array_equal(one, found[0]) for one in found)


def test_programs_of_the_other_package_work(iris: Served) -> None:
    """Under the names that they know."""
    url = f"http://{iris.http}/graphpipe"
    assert remote.execute(url, SETOSA).shape == (1, 3)
    assert remote.get_input_names(url) == ["flowers"]
    assert remote.get_input_types(url) == [np.dtype("f4")]
    assert remote.get_input_shapes(url) == [[None, 4]]


def test_bare_sockets_serve_the_same(tmp_path: Path) -> None:
    """TCP and Unix ones, and HTTP at the root."""
    path, tcp = tmp_path / "m.sock", nobody()
    flags = ("--graphpipe-unix", str(path), "--graphpipe-tcp", tcp, "--http-root", "graphpipe")
    with serving("functions.similarity:similarity", *flags) as one:
        for url in (f"unix://{path}", f"tcp://{tcp}", f"http://{one.http}"):
            with GraphPipe(url) as model:
                queries, items = np.float32([[1, 0], [1, 1]]), np.float32([[0, 1]])
                assert np.allclose(model.infer({"items": items, "queries": queries}), [[0], [0.5**0.5]])
                assert np.allclose(model.infer(queries, items), [[0], [0.5**0.5]])
                with pytest.raises(GraphPipeError) as refused:
                    model.infer(queries, np.float32([[1, 2, 3]]))
                assert refused.value.code == Code.SHAPE


def test_the_page_is_true(tmp_path: Path) -> None:
    """Its first program prints what it should; outputs by name, configs."""
    marked = "softmax, judge, scaled = function(softmax), function(judge), function(scaled)\n"
    code = "\n\n".join((blocks(*FUNCTIONS), marked))
    (tmp_path / "model.py").write_text(code)
    with serving("model", env={"PYTHONPATH": str(tmp_path)}) as one:
        url = f"http://{one.http}/graphpipe"
        program = blocks("print(model.infer(np.float32").replace("http://127.0.0.1:8080/graphpipe", f"{url}/softmax")
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(program, {})
        *rows, shape = said.getvalue().splitlines()
        assert len(rows) == 2
        assert ast.literal_eval(shape) == (-1, -1)
        scores = np.float32([[0, 1], [5, 2]])
        for name in ("classify", "judge", "lazy"):
            with GraphPipe(f"{url}/{name}") as model:
                assert model.infer(scores, outputs="best").tolist() == [1, 0]
                both = model.infer(scores, outputs=["chances", "best"])
                assert list(both) == ["chances", "best"]
                assert np.allclose(both["chances"].sum(1), 1)
        with GraphPipe(f"{url}/summed") as model:
            assert model.infer(np.float32([[1, 2], [3, 4]])).tolist() == [[1, 2], [4, 6]]
            assert model.metadata().inputs[0].shape == (-1, -1)
        with GraphPipe(f"{url}/forgiving") as model:
            assert np.allclose(model.infer(scores.astype("f8")).sum(1), 1)
        with GraphPipe(f"{url}/joined") as model, ThreadPoolExecutor(8) as threads:
            for found in threads.map(model.infer, [scores[:1], scores[1:], scores] * 4):
                assert np.allclose(found.sum(1), 1)
        with GraphPipe(f"{url}/scaled") as model:
            assert model.infer(scores).tolist() == scores.tolist()
            assert model.infer(scores, config='{"by": 2}').tolist() == (scores * 2).tolist()
            with pytest.raises(GraphPipeError) as refused:
                model.infer(scores, config="{")
            assert refused.value.code == Code.CONFIG
