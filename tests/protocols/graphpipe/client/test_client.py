"""`GraphPipe` against a server that is scripted."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from invoker.client import GraphPipe, GraphPipeError
from invoker.tensors import (
    Code,
    InferRequest,
    IOMetadata,
    MetadataResponse,
    TensorType,
    read_request,
    write_error_response,
    write_metadata_response,
)
from invoker.tensors import GraphPipeError as Refusal
from invoker.tensors.arrays import DTYPES, to_tensor
from tests.protocols.graphpipe.client.peer import Answer, Seen, echo, frame, nobody, outputs, page, sample, serving


def echoing(seen: Seen) -> Answer:
    """The inputs as outputs, by HTTP."""
    return page(echo(seen))


def by_name(seen: Seen) -> Answer:
    """Of the inputs those whose names are asked for as outputs, in the order of their names."""
    request = read_request(seen.body)
    assert isinstance(request, InferRequest)
    found = dict(zip(request.input_names, request.tensors, strict=True))
    return page(outputs(*[found[name] for name in request.output_names]))


@pytest.mark.parametrize("form", ["http", "unix+http", "tcp", "unix"])
def test_G097_every_type_comes_back_as_it_was_sent(tmp_path, form: str) -> None:
    """By each scheme: scalars, vectors, three dimensions, none at all."""
    is_raw = form in {"tcp", "unix"}
    path = tmp_path / "m.sock" if "unix" in form else None
    answer = (lambda seen: frame(echo(seen))) if is_raw else echoing
    with serving(answer, is_raw=is_raw, path=path) as peer:
        url = f"{form}://{path or peer.address}"
        with GraphPipe(url, timeout_s=10) as model:
            for dtype in DTYPES.values():
                for shape in ((), (3,), (2, 3, 4), (0, 3)):
                    plain = np.arange(int(np.prod(shape))).reshape(shape)
                    value = plain.astype("S").astype(object) if dtype.kind == "O" else plain.astype(dtype)
                    found = model.infer(value)
                    assert (found.dtype, found.shape) == (dtype, shape)
                    assert found.tolist() == value.tolist()
        assert peer.connections == 1


def test_bits_of_numbers_survive() -> None:
    """NaNs with something in them, minus zero, other layouts, other byte orders, truth values."""
    odd = np.array([0x7E01, 0xFE02, 0x8000], "<u2").view("<f2")
    with serving(echoing) as peer, GraphPipe(peer.http, timeout_s=10) as model:
        assert model.infer(odd).tobytes() == odd.tobytes()
        grid = np.arange(6, dtype=">i4").reshape(2, 3).T
        assert model.infer(grid).tolist() == grid.tolist()
        assert model.infer(grid).dtype == "<i4"
        assert model.infer([True, False]).dtype == np.uint8
        assert model.infer("héllo").item() == "héllo".encode()


def test_G089_a_server_that_reverses_its_description_is_bound_by_name() -> None:
    """The Python server's own builder declares a, b and says b, a; names go with their values all the same."""
    with serving(page(sample("py_metadata_response")), by_name) as peer, GraphPipe(peer.http, timeout_s=10) as model:
        described = model.metadata()
        assert [one.name for one in described.inputs] == ["b", "a"]
        assert [one.name for one in described.outputs] == ["product", "sum"]
        for inputs in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):
            assert model.infer(inputs, outputs=["a", "b"]) == {"a": 1, "b": 2}
            assert model.infer(inputs, outputs="b") == 2


def test_answers_of_the_go_server_are_read() -> None:
    """Strings without zeros at their ends; its description; its refusals."""
    answers = (
        page(sample("go_response_strings")),
        page(sample("go_metadata_response")),
        page(b"Unknown input\n", "400 Bad Request", "Content-Type: text/plain; charset=utf-8"),
        Answer(ending="reset"),
    )
    with serving(*answers) as peer, GraphPipe(peer.http, timeout_s=10) as model:
        assert model.infer(0).tolist() == [b"a", b"", b"four"]
        described = model.metadata()
        assert (described.name, [one.name for one in described.inputs]) == ("echo", ["images", "labels"])
        with pytest.raises(GraphPipeError) as refused:
            model.infer(0)
        assert (refused.value.code, refused.value.message, refused.value.http_status) == (None, "Unknown input", 400)
        with pytest.raises(GraphPipeError) as lost:
            model.infer(0)
        assert (lost.value.code, lost.value.http_status, lost.value.is_retryable) == (None, None, False)


def test_G085_refusals_are_told_apart() -> None:
    """And none of them poisons the connection."""
    refusal = write_error_response(Refusal(Code.SHAPE, "it is [4]"))
    answers = (page(refusal, "400 Bad Request"), page(refusal), page(b"<html>", "502 Bad Gateway"), echoing)
    with serving(*answers) as peer, GraphPipe(peer.http, timeout_s=10) as model:
        found = []
        for _ in range(3):
            with pytest.raises(GraphPipeError) as refused:
                model.infer(1)
            found.append((refused.value.code, refused.value.http_status))
        assert found == [(9, 400), (9, 200), (None, 502)]
        assert model.infer(1) == 1
        assert peer.connections == 1


def test_a_server_that_closed_meanwhile_is_connected_anew() -> None:
    """What was sent is not sent again."""
    closing = Answer(page(outputs(to_tensor(1))).raw, "closed")
    with serving(closing) as peer, GraphPipe(peer.http, timeout_s=10) as model:
        for count in (1, 2, 3):
            peer.gone.clear()
            assert model.infer(5) == 1
            assert (peer.connections, len(peer.seen)) == (count, count)
            assert peer.gone.wait(10)


def test_threads_share_a_client() -> None:
    """Each request has a connection to itself."""
    with serving(echoing) as peer, GraphPipe(peer.http, timeout_s=10) as model:
        found: list[int] = []

        def ask(number: int) -> None:
            found.extend(int(model.infer(number * 100 + again)) for again in range(10))

        threads = [threading.Thread(target=ask, args=(number,), name=f"asking {number}") for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert sorted(found) == sorted(number * 100 + again for number in range(4) for again in range(10))
        assert peer.connections <= 4


def test_what_is_asked_reaches_the_server() -> None:
    """Config, headers, names, scalars."""
    with serving(echoing) as peer:
        with GraphPipe(peer.http, headers={"X-Request-Id": "r1"}, scalar_as_vector=True, timeout_s=10) as model:
            assert model.infer({"n": 7}, config='{"top": 3}').tolist() == [7]
        request = read_request(peer.seen[0].body)
        assert isinstance(request, InferRequest)
        assert (request.config, request.input_names) == (b'{"top": 3}', ("n",))
        assert peer.seen[0].header("x-request-id") == "r1"


def test_a_client_that_was_not_closed_leaves_nothing() -> None:
    """One line is enough to ask."""
    with serving(echoing) as peer:
        assert GraphPipe(peer.http, timeout_s=10).infer([1, 2]).tolist() == [1, 2]
        assert peer.gone.wait(10)


def test_a_closed_client_asks_no_more() -> None:
    """Nor does one with a bad address."""
    model = GraphPipe(f"http://{nobody()}")
    model.close()
    model.close()
    with pytest.raises(RuntimeError, match="closed"):
        model.infer(1)
    with pytest.raises(ValueError, match="begin with http"):
        GraphPipe("127.0.0.1:80")


def test_G096_the_limit_of_answers_can_be_set() -> None:
    """Smaller ones are read, larger ones refused."""
    with serving(echoing) as peer, GraphPipe(peer.http, limit_bytes=4096, timeout_s=10) as model:
        assert model.infer(np.zeros(100)).shape == (100,)
        with pytest.raises(GraphPipeError, match="limit of 4096 bytes") as refused:
            model.infer(np.zeros(1000))
        assert refused.value.code == Code.TOO_LARGE


def test_a_description_of_ours_is_read() -> None:
    """Shapes, types and words."""
    said = MetadataResponse(
        "m", "1", "invoker/1", "d", (IOMetadata("x", "what", (-1, 3), TensorType.FLOAT32),), (IOMetadata("y"),)
    )
    with serving(page(write_metadata_response(said))) as peer, GraphPipe(peer.http, timeout_s=10) as model:
        assert model.metadata() == said
