"""graphpipe from PyPI, unchanged: its client asks our server, and ours asks its server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from invoker.client import GraphPipe, GraphPipeError
from invoker.protocols.graphpipe.client import remote
from invoker.tensors import TensorType
from invoker.tensors.arrays import DTYPES
from tests.interop.graphpipe.peers import Refused, Stock, same, stock, stock_server
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(60)

MODELS = "tests.e2e.foreign_models"
NUMERIC = [one for one in TensorType if one not in (TensorType.NULL, TensorType.STRING)]
SHAPES = [(), (1,), (3,), (2, 3), (2, 1, 2, 2), (0,), (0, 3), (2, 0)]
WORDS = [
    np.array(["a", "", "four", "é😀"]),
    np.array([b"a", b"", b"\xff\xfe"]),
    np.array(["plain", b"bytes", "é", b"\xff"], object),
    np.array([["a", "b"], ["c", "d\u20ac"]], object),
    np.array(["one"]),
    np.array("alone", object),
    np.array([], object),
]


@pytest.fixture(scope="module")
def http() -> Iterator[str]:
    """The URL of our server, its first model at the root."""
    with serving(MODELS, "--http-root", "graphpipe") as served:
        yield f"http://{served.http}"


@pytest.fixture(scope="module")
def lenient() -> Iterator[Served]:
    """Our server, whose errors come with status 200."""
    with serving(MODELS, "--graphpipe-errors", "200") as served:
        yield served


@pytest.fixture(scope="module", params=["today's flatbuffers", "flatbuffers 1.9"])
def client(request: pytest.FixtureRequest) -> Iterator[Stock]:
    """The client of the package."""
    with stock(is_pinned=request.param == "flatbuffers 1.9") as one:
        yield one


def filled(type_: TensorType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Elements that differ; floats with what has no other sign than its bits, integers with their bounds."""
    dtype = DTYPES[type_]
    array = np.arange(int(np.prod(shape)), dtype=np.int64).astype(dtype)
    if dtype.kind == "f":
        ends = np.array([np.nan, -0.0, np.inf, np.finfo(dtype).tiny], dtype)
    else:
        ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    array[: len(ends)] = ends[: len(array)]
    return array.reshape(shape)


# Its client and our server


@pytest.mark.parametrize("type_", NUMERIC, ids=lambda one: one.name)
def test_G044_G049_GT23_each_type_of_numbers_comes_back(client: Stock, http: str, type_: TensorType) -> None:
    """Bit by bit: scalars, vectors, tables, and what has no elements."""
    for shape in SHAPES:
        sent = filled(type_, shape)
        assert same(client.execute(f"{http}/graphpipe/echo", sent), sent), shape


@pytest.mark.parametrize("words", WORDS, ids=lambda one: f"{one.dtype.str}{one.shape}")
def test_G035_strings_come_back(client: Stock, http: str, words: np.ndarray[Any, Any]) -> None:
    """Text, bytes, objects of either; the client makes numpy's bytes of what it receives."""
    got = client.execute(f"{http}/graphpipe/speak", words)
    raw = [one.encode() if isinstance(one, str) else bytes(one) for one in words.reshape(-1)]
    assert got.shape == words.shape
    assert got.reshape(-1).tolist() == np.array(raw).tolist()


def test_G051_G055_inputs_are_bound_by_name_or_order(client: Stock, http: str) -> None:
    """And the config reaches the function."""
    x, n = np.float32([1, 2]), np.int64([-3, 10])
    url = f"{http}/graphpipe/pair"
    assert client.execute_multi(url, [x, n])[0].tolist() == [-2, 12]
    assert client.execute_multi(url, [n, x], ["n", "x"], ["y"])[0].tolist() == [-2, 12]
    assert client.execute_multi(url, [n, x], ["n", "x"], config='{"k": 2}')[0].tolist() == [-1, 14]


def test_G057_G058_outputs_are_those_asked_for(client: Stock, http: str) -> None:
    """All of them in their order, or some in any; one alone is no list."""
    url, rows = f"{http}/graphpipe/classify", np.float32([[1, 2], [5, 3]])
    assert [one.tolist() for one in client.execute(url, rows)] == [[1, 2], [1, 0]]
    assert client.execute(url, rows, "rows", "label").tolist() == [1, 0]
    both = client.execute_multi(url, [rows], ["rows"], ["label", "margin", "label"])
    assert [(one.dtype.str, one.tolist()) for one in both] == [("<i8", [1, 0]), ("<f4", [1, 2]), ("<i8", [1, 0])]


def test_all_twelve_types_in_one_request(client: Stock, http: str) -> None:
    """In no order, by their names."""
    names = [f"in{one.value}" for one in NUMERIC][::-1]
    arrays = [np.array([0, 1, 100]).astype(DTYPES[one]) for one in NUMERIC][::-1]
    url = f"{http}/graphpipe/types"
    (said,) = client.execute_multi(url, [*arrays, np.array(["s"])], [*names, "in12"], ["out"])
    expected = [f"{one.dtype.name} {one.tolist()}".encode() for one in arrays[::-1]]
    assert said.tolist() == [*expected, b"object [b's']"]


def test_G009_the_first_model_is_at_the_root(client: Stock, http: str) -> None:
    """For programs that know a host and a port only."""
    for url in (http, f"{http}/", f"{http}/graphpipe"):
        assert client.execute(url, np.int16([3])).tolist() == [3]


def test_G087_G088_metadata_as_the_client_gives_it(client: Stock, http: str) -> None:
    """What it reads of the answer, and each of its own short cuts."""
    url = f"{http}/graphpipe/classify"
    found = client.ask("metadata", url)
    assert found["Name"] == "classify"
    assert found["Server"].startswith("invoker/")
    assert found["Description"].startswith("Say which")
    assert found["Inputs"] == [{"Name": "rows", "Description": "two numbers [batch, 2]", "Shape": [-1, 2], "Type": 10}]
    assert [(one["Name"], one["Shape"], one["Type"]) for one in found["Outputs"]] == [
        ("margin", [-1], TensorType.FLOAT32),
        ("label", [-1], TensorType.INT64),
    ]
    assert client.ask("get_input_names", url) == ["rows"]
    assert client.ask("get_output_names", url) == ["margin", "label"]
    assert client.ask("get_input_types", url) == ["<f4"]
    assert client.ask("get_output_types", url) == ["<f4", "<i8"]
    assert client.ask("get_input_shapes", url) == [[None, 2]]
    assert client.ask("get_output_shapes", url) == [[None], [None]]


def test_a_type_or_a_shape_that_is_not_declared(client: Stock, http: str) -> None:
    """None, and no sizes."""
    assert client.ask("get_input_types", f"{http}/graphpipe/echo") == [None]
    assert client.ask("get_input_shapes", f"{http}/graphpipe/echo") == [[]]


@pytest.mark.parametrize(
    ("path", "array", "text"),
    [
        ("/graphpipe/classify", np.float64([[1, 2]]), "400 Client Error"),
        ("/graphpipe/classify", np.float32([1, 2, 3]), "400 Client Error"),
        ("/graphpipe/fail", np.float32([1]), "500 Server Error"),
        ("/nowhere", np.float32([1]), "404 Client Error"),
    ],
)
def test_G081_errors_are_raised_by_their_status(
    client: Stock, http: str, path: str, array: np.ndarray[Any, Any], text: str
) -> None:
    """All that the client says: it does not read the body then."""
    with pytest.raises(Refused) as failure:
        client.execute(http + path, array)
    assert failure.value.name == "HTTPError"
    assert failure.value.text.startswith(text)
    assert failure.value.text.endswith(f"for url: {http}{path}")


def test_G081_GT54_messages_are_raised_where_errors_have_status_200(client: Stock, lenient: Served) -> None:
    """`--graphpipe-errors 200` is for this client."""
    url = f"http://{lenient.http}/graphpipe"
    for path, said in (
        ("classify", "input 'rows' is Float64, and Float32 is declared"),
        ("fail", "nothing can be made of 2"),
    ):
        with pytest.raises(Refused) as failure:
            client.execute(f"{url}/{path}", np.float64([[1, 2]]))
        assert failure.value.name == "Exception"
        assert said in failure.value.text
    assert client.execute(f"{url}/echo", np.float64([[1, 2]])).tolist() == [[1, 2]]


def test_eight_mebibytes_make_the_round_trip(client: Stock, http: str) -> None:
    """Numbers that differ."""
    sent = np.arange(1 << 21, dtype=np.float32).reshape(2, -1, 8)
    assert same(client.execute(f"{http}/graphpipe/echo", sent), sent)


def test_G012_one_connection_is_kept(client: Stock, http: str) -> None:
    """A session's, for requests and descriptions, also after one that failed."""
    for number in range(20):
        assert client.execute(f"{http}/graphpipe/echo", np.int32(number), is_kept=True) == number
        if number % 5 == 0:
            client.ask("metadata", f"{http}/graphpipe/echo", is_kept=True)
            with pytest.raises(Refused, match="400 Client Error"):
                client.execute(f"{http}/graphpipe/classify", np.int32(number), is_kept=True)
    assert client.connections == 1


# Our client and its server


@pytest.fixture(scope="module")
def foreign() -> Iterator[str]:
    """Its server, on the flatbuffers that it asks for."""
    with stock_server(is_pinned=True) as url:
        yield url


@pytest.fixture(scope="module")
def pinned() -> Iterator[Stock]:
    """Its client, on the same."""
    with stock(is_pinned=True) as one:
        yield one


@pytest.mark.parametrize("type_", NUMERIC, ids=lambda one: one.name)
def test_G093_G111_ours_gives_what_its_own_client_gives(pinned: Stock, foreign: str, type_: TensorType) -> None:
    """Of each type and shape, bit by bit."""
    with GraphPipe(foreign) as model:
        for shape in SHAPES:
            sent = filled(type_, shape)
            theirs = pinned.execute(foreign, sent)
            assert same(remote.execute(foreign, sent), theirs), shape
            assert same(model.infer(sent), theirs), shape


def test_G093_several_with_names_and_config(pinned: Stock, foreign: str) -> None:
    """One output is no list, two are; the server writes down what it was told."""
    arrays = [np.float32([[1, 2]]), np.int64([3])]
    names: tuple[list[str], list[str]] = (["a", "b"], ["y", "z", "say"])
    ours = remote.execute_multi(foreign, arrays, *names, config="settings")
    theirs = pinned.execute_multi(foreign, arrays, *names, config="settings")
    assert [one.tolist() for one in ours] == [one.tolist() for one in theirs]
    assert ours[2].tolist() == [b'["settings", "a", "b"]']
    assert same(remote.execute(foreign, arrays[0], "a", "y"), pinned.execute(foreign, arrays[0], "a", "y"))


def test_G095_strings_of_its_server(foreign: str) -> None:
    """Bytes, as objects; zeros at the end are lost where the server keeps numpy's bytes."""
    with GraphPipe(foreign) as model:
        assert model.infer(["a", b"\xff", "é"]).tolist() == [b"a", b"\xff", "é".encode()]
        assert model.infer([["a", "b"]]).shape == (1, 2)


def test_G089_G093_metadata_of_its_server(pinned: Stock, foreign: str) -> None:
    """The same short cuts, the same answers; its builder reverses inputs and outputs."""
    assert [one.name for one in GraphPipe(foreign).metadata().inputs] == ["b", "a"]
    for call in ("get_input_names", "get_output_names", "get_input_shapes", "get_output_shapes"):
        assert getattr(remote, call)(foreign) == pinned.ask(call, foreign), call
    for call in ("get_input_types", "get_output_types"):
        assert [one.str for one in getattr(remote, call)(foreign)] == pinned.ask(call, foreign), call


def test_G096_its_server_on_todays_flatbuffers_is_refused() -> None:
    """There it writes answers whose offsets lead nowhere; a description is still read."""
    with stock_server(is_pinned=False) as url, GraphPipe(url) as model:
        assert model.metadata().name == "mixer"
        with pytest.raises(GraphPipeError, match="the answer cannot be read") as failure:
            model.infer(np.float32([1]))
        assert (failure.value.code, failure.value.http_status) == (1, 200)
