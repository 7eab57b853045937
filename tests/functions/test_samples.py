"""Each sample does what its docstring says."""

import importlib
import re
from pathlib import Path

import pytest

import functions
from functions.store import ROWS
from invoker import Message
from invoker.testing import Harness

SAMPLES = {
    "square:square": ([7], [49]),
    "running_mean:running_mean": ([1, 2, 6], [1, 1.5, 3]),
    "chat:chat": (["hello"], ["you", "said", "hello"]),
    "ticks:ticks": (None, [1, 2, 3]),
    "total:total": (range(101), [5050]),
    "model:Model": (["good bad good", "bad"], [1, -1]),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_with_one_input(name):
    """Values in, values out."""
    given, wanted = SAMPLES[name]
    assert Harness(f"functions.{name}").run(*([] if given is None else [given])) == wanted


def test_add_zips_its_inputs():
    """Pair by pair, up to the shorter."""
    assert Harness("functions.add:add").run([1, 2, 3], [40, 40]) == [41, 42]


def test_repeat_reads_two_inputs():
    """Each word as often as the count beside it says."""
    assert Harness("functions.repeat:repeat").run(["ho", "hey"], [3, 1]) == ["ho", "ho", "ho", "hey"]


def test_topk_takes_a_stream_and_a_value():
    """The value is the first of its input."""
    assert Harness("functions.topk:topk").run(["pear", "fig", "apple"], [2]) == ["apple", "pear"]


def test_split_has_two_outputs():
    """Even and odd, each in order."""
    result = Harness("functions.split:split").invoke(range(1, 8))
    assert result.error is None
    assert (result.values(0), result.values(1)) == ([2, 4, 6], [1, 3, 5, 7])


def test_tag_addresses_its_outputs():
    """Values go where they are tagged."""
    result = Harness("functions.tag:tag").invoke(["1", "x"])
    assert (result.values(0), result.values(1)) == ([1], ["'x' is no number"])


def test_created_answers_with_headers():
    """A status for HTTP callers, and what the request said."""
    (made,) = Harness("functions.created:created").invoke([Message({"id": 7}, headers={"X-Name": "shelf"})]).messages()
    assert made.payload == "shelf 7"
    assert made.headers["x-http-status"] == "201"


def test_store_is_a_sink():
    """Rows are kept, and a message that is no row is refused by name."""
    harness = Harness("functions.store:store")
    assert harness.invoke([{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]).error is None
    assert ROWS[1] == "b"
    assert "name" in str(harness.invoke([{"id": 1}]).error)


def test_csv_rows_brings_its_codec():
    """The codec decodes and encodes, and other media types still work."""
    (made,) = (
        Harness("functions.csv_rows:swap")
        .invoke([Message(b"a,b\nc,d\n", media_type="text/csv")], accept="text/csv")
        .messages()
    )
    assert made.payload == [["b", "a"], ["d", "c"]]
    assert made.media_type == "text/csv"
    assert Harness("functions.csv_rows:swap").run([[["a", "b"]]]) == [[["b", "a"]]]


def test_every_sample_says_how_to_run_and_call_it():
    """The docstring of each file has both commands."""
    for path in sorted(Path(functions.__file__).parent.glob("*.py")):
        if not path.stem.startswith(("__init__", "conformance")):
            text = importlib.import_module(f"functions.{path.stem}").__doc__ or ""
            if path.stem == "federated":  # a file of rounds names its functions, and devices call it
                assert "python -m invoker functions/iris.toml" in text
                assert "python -m invoker device functions.federated:train" in text
                continue
            assert re.search(rf"python -m invoker functions\.{path.stem}[:\s]", text)
            assert "python -m invoker call" in text or "curl" in text
