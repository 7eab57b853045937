"""What docs/how-to/serve-a-tensor-model.md says, tried with its own examples in memory."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from invoker import Message
from invoker.cli.main import main
from invoker.tensors import write_tensor
from invoker.tensors.arrays import to_tensor
from invoker.testing import Harness

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "how-to" / "serve-a-tensor-model.md"
BLOCK = re.compile(r"^```python(?: \w+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FUNCTIONS = (
    "def softmax",
    "def judge",
    "def lazy",
    "def classify",
    "halved = ",
    "def forgiving",
    "def joined",
    "def summed",
    "def scaled",
)
TENSOR = "application/vnd.graphpipe.tensor"


def blocks(*marks: str, page: Path = PAGE) -> str:
    """The pieces of code that hold these marks, in the order of the page."""
    found = [text for text in BLOCK.findall(page.read_text()) if any(mark in text for mark in marks)]
    assert len(found) == len(marks)
    return "\n\n".join(found)


def sent(value: np.ndarray) -> Message[bytes]:
    """An array as a tensor; without a word it would be JSON, which keeps neither types nor empty sizes."""
    return Message(bytes(write_tensor(to_tensor(value))), media_type=TENSOR)


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The page's functions, as a module."""
    (tmp_path / "model.py").write_text(blocks(*FUNCTIONS))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("model")
    del sys.modules["model"]


def test_the_first_function_works(model) -> None:
    """Rows add up to one."""
    (found,) = Harness(model.softmax).run([np.float32([[0, 0], [0, 3]])], accept=TENSOR)
    assert found.dtype == np.float32
    assert np.allclose(found, [[0.5, 0.5], [1 / (1 + np.e**3), 1 / (1 + np.e**-3)]], atol=1e-6)


def test_outputs_are_sent_by_name(model) -> None:
    """Both, where both are wanted."""
    result = Harness(model.classify).invoke([np.float32([[0, 1], [5, 2]])], accept=(TENSOR, TENSOR))
    assert result.error is None
    assert np.allclose(result.values(0)[0].sum(1), 1)
    assert result.values(1)[0].tolist() == [1, 0]


def test_several_outputs_are_returned(model) -> None:
    """A tuple, and a dict of what is wanted."""
    scores = np.float32([[0, 1], [5, 2]])
    for fn in (model.judge, model.lazy):
        result = Harness(fn).invoke([scores], accept=(TENSOR, TENSOR))
        assert result.error is None
        assert np.allclose(result.values(0)[0].sum(1), 1)
        assert result.values(1)[0].tolist() == [1, 0]


def test_rows_are_summed(model) -> None:
    """As a stream of them is."""
    rows = Harness(model.summed).run([sent(np.float32([1, 2])), sent(np.float32([3, 4]))], accept=TENSOR)
    assert [one.tolist() for one in rows] == [[1, 2], [4, 6]]


def test_declarations_and_casting_work(model) -> None:
    """Without annotations; of another type."""
    scores = np.float32([[0, 1]])
    assert Harness(model.halved).run([sent(scores)], accept=TENSOR)[0].tolist() == [[0, 0.5]]
    (found,) = Harness(model.forgiving).run([sent(np.int64([[0, 1]]))], accept=TENSOR)
    assert np.allclose(found, model.softmax(scores))


def test_inspect_shows_what_the_page_says(model, capsys) -> None:
    """Line by line."""
    assert main(["inspect", "model:softmax"]) == 0
    shown = re.search(r"^```\n(  model .*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert capsys.readouterr().out.endswith(shown[1])


def test_a_function_without_a_config_goes_on(model) -> None:
    """As it would with an empty one."""
    (found,) = Harness(model.scaled).run([np.float32([[1, 2]])], accept=TENSOR)
    assert found.tolist() == [[1, 2]]


def test_every_type_of_the_table_is_taken() -> None:
    """Each annotation is understood, and gives arrays as the page says."""
    rows = re.findall(r"^\| (`(?:NDArray|Annotated|np\.).*?) \|", PAGE.read_text(), re.MULTILINE)
    annotations = [one for row in rows for one in re.findall("`(.*?)`", row)]
    assert len(annotations) == 10
    names = {}
    exec("from typing import Annotated\nimport numpy as np\nfrom numpy.typing import NDArray", names)
    for annotation in annotations:
        kind = eval(annotation, names)

        def taken(x):
            return str(x.dtype)

        taken.__annotations__ = {"x": kind, "return": str}
        assert Harness(taken).run([sent(_value(annotation))], accept="text/plain") == [_dtype(annotation)], annotation


def _value(annotation: str) -> np.ndarray:
    if "str_" in annotation or "object_" in annotation:
        return np.array(["a", "é"], object)
    if "float32" in annotation or "floating" in annotation:
        return np.zeros((28, 28), np.float32)
    return np.ones((28, 28), np.uint8)


def _dtype(annotation: str) -> str:
    dtypes = {"str_": "<U1", "object_": "object", "bool_": "bool", "float": "float32"}
    return next((dtype for mark, dtype in dtypes.items() if mark in annotation), "uint8")
