"""What docs/how-to/serve-an-onnx-model.md says, tried with a tiny model that is built here, where onnx is."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from invoker.client import GraphPipe, GraphPipeError
from invoker.tensors import Code
from invoker.testing import Harness
from tests.serving import serving
from tests.test_howto_tensors import TENSOR, blocks, sent

pytest.importorskip("onnx", reason="takes `pip install onnx onnxruntime`")
pytest.importorskip("onnxruntime", reason="takes `pip install onnx onnxruntime`")

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "serve-an-onnx-model.md"
WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3) / 10
BIAS = np.float32([0.5, -0.5, 0])


def linear(path: Path) -> None:
    """Write a model of one layer: scores = x @ WEIGHTS + BIAS, best = argmax of the scores."""
    from onnx import TensorProto, checker, helper, numpy_helper, save

    nodes = [
        helper.make_node("Gemm", ["x", "weights", "bias"], ["scores"]),
        helper.make_node("ArgMax", ["scores"], ["best"], axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 3]),
            helper.make_tensor_value_info("best", TensorProto.INT64, ["batch"]),
        ],
        [numpy_helper.from_array(WEIGHTS, "weights"), numpy_helper.from_array(BIAS, "bias")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    checker.check_model(made)
    save(made, path)


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The page's functions, as a module whose model is ours."""
    linear(tmp_path / "model.onnx")
    (tmp_path / "onnx_page.py").write_text(blocks("def predict", "def explain", page=PAGE))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ONNX_MODEL", str(tmp_path / "model.onnx"))
    monkeypatch.setenv("ONNX_THREADS", "1")
    yield importlib.import_module("onnx_page")
    del sys.modules["onnx_page"]


@pytest.mark.timeout(30)
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_the_model_is_asked(page, rows: int) -> None:
    """Batches of any size, in Float32."""
    x = np.random.default_rng(rows).normal(size=(rows, 4)).astype(np.float32)
    (found,) = Harness(page.predict).run([sent(x)], accept=TENSOR)
    assert (found.dtype, found.shape) == (np.float32, (rows, 3))
    assert np.allclose(found, x @ WEIGHTS + BIAS, atol=1e-6)


@pytest.mark.timeout(30)
def test_several_outputs_are_one_run(page) -> None:
    """Both, where both are wanted."""
    x = np.float32([[1, 0, 0, 0], [0, 0, 0, 1]])
    result = Harness(page.explain).invoke([sent(x)], accept=(TENSOR, TENSOR))
    assert result.error is None
    assert np.allclose(result.values(0)[0], x @ WEIGHTS + BIAS, atol=1e-6)
    assert result.values(1)[0].tolist() == (x @ WEIGHTS + BIAS).argmax(1).tolist()


@pytest.mark.timeout(30)
def test_names_and_shapes_are_in_the_model(page) -> None:
    """As the page says where to find them."""
    ends = [*page.session().get_inputs(), *page.session().get_outputs()]
    shapes = {"x": ["batch", 4], "scores": ["batch", 3], "best": ["batch"]}
    assert {one.name: one.shape for one in ends} == shapes


@pytest.mark.timeout(60)
def test_the_model_is_served(page, tmp_path) -> None:
    """Clients see names and shapes, and get the outputs that they ask for."""
    x = np.float32([[1, 0, 0, 0], [0, 0, 0, 1]])
    wanted = x @ WEIGHTS + BIAS
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    with serving("onnx_page", env={"PYTHONPATH": paths}) as one:
        with GraphPipe(f"http://{one.http}/graphpipe/predict") as model:
            assert [(one.name, one.shape) for one in model.metadata().inputs] == [("x", (-1, 4))]
            assert np.allclose(model.infer({"x": x}), wanted, atol=1e-6)
            with pytest.raises(GraphPipeError) as refused:
                model.infer(x[:, :3])
            assert refused.value.code == Code.SHAPE
        with GraphPipe(f"http://{one.http}/graphpipe/explain") as model:
            assert model.infer(x, outputs="best").tolist() == wanted.argmax(1).tolist()
            assert list(model.infer(x, outputs=["best", "scores"])) == ["best", "scores"]
