"""graphpipe from npm, unchanged: the JavaScript client of GraphPipe, which knows numbers of up to 32 bits and Float64.

It names no outputs in a way that a server can read, and of an error it shows the status alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.interop.graphpipe.peers import same
from tests.interop.graphpipe.values import packed, unpacked
from tests.interop.tools import run
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(60)

CLIENT = Path(__file__).parent / "graphpipe/client.js"
TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8"]


@pytest.fixture(scope="module")
def http() -> Iterator[str]:
    """The URL of our server, its first model at the root."""
    with serving("tests.e2e.foreign_models", "--http-root", "graphpipe") as served:
        yield f"http://{served.http}"


@pytest.fixture(scope="module")
def lenient() -> Iterator[Served]:
    """Our server, whose errors come with status 200."""
    with serving("tests.e2e.foreign_models", "--graphpipe-errors", "200") as served:
        yield served


def question(url: str, *arrays: Any, **more: Any) -> dict[str, Any]:
    """What the client is to ask."""
    return {"url": url, "inputs": [packed(one) for one in arrays], **more}


def answers(*questions: dict[str, Any]) -> list[dict[str, Any]]:
    """What it was told, in one process."""
    done = run("node", CLIENT, stdin=json.dumps(questions))
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def outputs(answer: dict[str, Any]) -> list[Any]:
    """Arrays of an answer that is no failure."""
    assert answer["status"] == 200, answer
    return [unpacked(one) for one in answer["outputs"]]


@pytest.mark.parametrize("dtype", TYPES)
def test_G044_G049_GT23_each_type_of_numbers_comes_back(http: str, dtype: str) -> None:
    """Bit by bit: scalars, vectors, tables, and what has no elements."""
    sent = [np.arange(int(np.prod(shape))).astype(dtype).reshape(shape) for shape in ((), (3,), (2, 2, 3), (0, 3))]
    ends = (np.nan, -0.0, np.inf) if dtype[0] == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    sent.append(np.array(ends, dtype))
    found = answers(*(question(f"{http}/graphpipe/echo", one) for one in sent))
    for one, answer in zip(sent, found, strict=True):
        (got,) = outputs(answer)
        assert same(got, one), one.shape


def test_G001_the_type_of_a_form_is_no_matter(http: str) -> None:
    """The client says that its buffer is one; at the root as well."""
    first, second = answers(question(http, np.int16([3])), question(f"{http}/graphpipe", np.int16([4])))
    assert [one.tolist() for one in outputs(first) + outputs(second)] == [[3], [4]]


def test_G052_several_inputs_in_their_order(http: str) -> None:
    """None of them named; all that the client can send are told apart."""
    sent = [np.array([0, 1, 100], dtype) for dtype in TYPES]
    by_order, by_list = answers(
        question(f"{http}/graphpipe/three", *(np.array([number], "f8") for number in (1, 20, 300))),
        question(f"{http}/graphpipe/three", *sent[:3], outputNames=[]),
    )
    assert outputs(by_order)[0].tolist() == [1, 20, 300]
    assert outputs(by_list)[0].tolist() == [0, 1, 100, 0, 1, 100, 0, 1, 100]


def test_G053_a_named_input_is_the_one_at_its_place(http: str) -> None:
    """The client leaves the place of the name empty; servers have taken that for the default there."""
    url, rows = f"{http}/graphpipe/three", [np.array([number], "f8") for number in (1, 20, 300)]
    one, several = answers(
        question(f"{http}/graphpipe/echo", rows[0], inputNames="x"),
        question(url, *rows, inputNames=["a", "b", "c"]),
    )
    assert outputs(one)[0].tolist() == [1]
    assert outputs(several)[0].tolist() == [1, 20, 300]


def test_G059_a_named_output_is_refused(http: str) -> None:
    """Its name is empty, too, and there is no default for one output; the Go server refuses it as well."""
    (answer,) = answers(question(f"{http}/graphpipe/echo", np.float32([1]), outputNames="output0"))
    assert (answer["status"], answer["code"]) == (400, "5")


def test_G031_the_config_reaches_the_function(http: str) -> None:
    """As text."""
    (answer,) = answers(question(f"{http}/graphpipe/scaled", np.float32([1, 2]), config='{"k": 2}'))
    assert outputs(answer)[0].tolist() == [2, 4]


def test_G087_G088_metadata_as_the_client_gives_it(http: str) -> None:
    """With open sizes as -1."""
    (answer,) = answers({"url": f"{http}/graphpipe/classify", "metadata": True})
    found = answer["metadata"]
    assert found["Name"] == "classify"
    assert found["Server"].startswith("invoker/")
    assert found["Inputs"] == [{"Name": "rows", "Description": "two numbers [batch, 2]", "Shape": [-1, 2], "Type": 10}]
    assert [(one["Name"], one["Shape"], one["Type"]) for one in found["Outputs"]] == [
        ("margin", [-1], 10),
        ("label", [-1], 8),
    ]


def test_G081_G082_errors_are_told_by_their_status(http: str) -> None:
    """And by a header; the client reads the body of any status, and finds no tensors there. The next one is served."""
    found = answers(
        question(f"{http}/graphpipe/classify", np.float64([[1, 2]])),
        question(f"{http}/graphpipe/classify", np.float32([1])),
        question(f"{http}/graphpipe/fail", np.float32([1])),
        question(f"{http}/nowhere", np.float32([1])),
        question(f"{http}/graphpipe/echo", np.float32([1])),
    )
    assert [(one["status"], one.get("code")) for one in found] == [
        (400, "8"),
        (400, "9"),
        (500, "14"),
        (404, None),
        (200, None),
    ]
    for one in found[:3]:
        assert (one["message"], one["outputs"]) == (f"Request failed with status code {one['status']}", [])


def test_GT54_errors_of_status_200_are_not_for_this_client(lenient: Served) -> None:
    """It takes them for an answer without tensors: hence the option is not the default."""
    (answer,) = answers(question(f"http://{lenient.http}/graphpipe/fail", np.float32([1])))
    assert (answer["status"], answer["outputs"]) == (200, [])


def test_strings_and_long_integers_are_beyond_the_client(http: str) -> None:
    """It says so itself, of what it is to send as of what it has received."""
    sent, received = answers(
        question(f"{http}/graphpipe/echo", np.int64([1])), question(f"{http}/graphpipe/classify", np.float32([[1, 2]]))
    )
    assert (sent["message"], sent.get("status")) == ("Unknown dtype: bigint64", None)
    assert received["message"] == "Unhandled data type"


def test_eight_mebibytes_make_the_round_trip(http: str) -> None:
    """Numbers that differ."""
    sent = np.arange(1 << 21, dtype=np.float32).reshape(2, -1, 8)
    (answer,) = answers(question(f"{http}/graphpipe/echo", sent))
    assert same(outputs(answer)[0], sent)


def test_G012_one_connection_is_kept(http: str) -> None:
    """For requests one after the other, also after one that failed."""
    fine = [question(f"{http}/graphpipe/echo", np.int32([number]), isKept=True) for number in range(10)]
    bad = question(f"{http}/graphpipe/classify", np.int32([0]), isKept=True)
    found = answers(*fine[:5], bad, *fine[5:])
    assert found.pop(5)["status"] == 400
    assert [outputs(one)[0].tolist() for one in found] == [[number] for number in range(10)]
    assert len({one["port"] for one in found}) == 1
