"""Requests as they are sent, and results in the form in which they were asked for."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from invoker.protocols.graphpipe.client.failure import GraphPipeError
from invoker.protocols.graphpipe.client.links import Reply
from invoker.protocols.graphpipe.client.requests import Server, Settings, array_of, result_of, written, written_tensors
from invoker.tensors import LIMIT_BYTES, InferRequest, Tensor, TensorType, read_request, write_infer_response
from invoker.tensors.arrays import to_array, to_tensor
from tests.protocols.graphpipe.client.peer import frame, page, serving


def request_of(*inputs, outputs=None, config=b"", scalar_as_vector=False) -> InferRequest:
    """A request as a server reads it."""
    read = read_request(bytes(written(inputs, outputs, config, scalar_as_vector=scalar_as_vector)))
    assert isinstance(read, InferRequest)
    return read


def reply(*values) -> Reply:
    """What a server answers."""
    return Reply(bytes(write_infer_response([to_tensor(value) for value in values])), 200)


REPLY = reply([1.0])


def test_numpy_is_asked_for_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install; whatever else is missing keeps its own words."""
    monkeypatch.delattr("invoker.tensors.arrays")
    monkeypatch.delitem(sys.modules, "invoker.tensors.arrays")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "numpy", None)
        for ask in (lambda: written([[1.0]], None, b"", scalar_as_vector=False), lambda: result_of(REPLY, 1000, None)):
            with pytest.raises(ModuleNotFoundError) as caught:
                ask()
            text = "the GraphPipe client needs numpy, which is not installed; pip install numpy"
            assert (caught.value.name, str(caught.value)) == ("numpy", text)
    monkeypatch.setitem(sys.modules, "invoker.tensors.arrays", None)
    with pytest.raises(ModuleNotFoundError, match=r"tensors\.arrays"):
        request_of(1)


def test_one_value_is_one_unnamed_input() -> None:
    """A list is an array, not several inputs."""
    for value in ([1.0, 2.0], (1.0, 2.0), np.array([1.0, 2.0])):
        request = request_of(value)
        assert request.input_names == ()
        assert to_array(request.tensors[0]).tolist() == [1.0, 2.0]


def test_several_values_are_several_inputs() -> None:
    """In their order; none is for functions without inputs."""
    assert [to_array(one).tolist() for one in request_of(1, [2]).tensors] == [1, [2]]
    assert request_of() == request_of({}) == InferRequest()


def test_G089_a_dict_binds_by_name() -> None:
    """Each name goes with its value, so nobody's order matters."""
    request = request_of({"b": 2, "a": 1}, outputs=("y", "x", "y"), config="é")
    assert dict(zip(request.input_names, map(to_array, request.tensors), strict=True)) == {"a": 1, "b": 2}
    assert request.output_names == ("y", "x", "y")
    assert request.config == "é".encode()
    assert request_of(1, outputs="y", config=b"\0\xff").output_names == ("y",)
    assert request_of(1, outputs="y", config=b"\0\xff").config == b"\0\xff"


def test_G094_names_are_counted_before_anything_is_sent() -> None:
    """There are as many as inputs, or none."""
    one = to_tensor(1)
    with pytest.raises(ValueError, match="2 input names and 1 inputs"):
        written_tensors([one], ["a", "b"], [], b"")
    with pytest.raises(ValueError, match="1 input names and 2 inputs"):
        written_tensors([one, one], ["a"], [], b"")
    assert written_tensors([one, one], [], ["y"], b"").size


def test_a_value_that_is_no_tensor_is_named() -> None:
    """By its name, or its number."""
    with pytest.raises(ValueError, match=r"input 'phase': .*complex128 has no tensor type"):
        request_of({"size": 1, "phase": 1j})
    with pytest.raises(ValueError, match="input #1: "):
        request_of(1, [[1], [2, 3]])


def test_a_request_that_is_too_large_is_no_request(monkeypatch) -> None:
    """FlatBuffers end at two gigabytes."""
    monkeypatch.setattr("invoker.tensors.layout.MAX_BYTES", 100)
    with pytest.raises(ValueError, match="cannot be written"):
        request_of(np.zeros(1000))


def test_G039_scalars_may_be_sent_as_vectors() -> None:
    """For servers that count no element in a shape of no dimensions; only these change."""
    request = request_of({"n": 7, "text": "a", "x": [[1]]}, scalar_as_vector=True)
    assert [one.shape for one in request.tensors] == [(1,), (1,), (1, 1)]
    assert [to_array(one).tolist() for one in request.tensors] == [[7], [b"a"], [[1]]]
    assert request_of(7).tensors[0].shape == ()


def test_G095_text_is_sent_and_bytes_come_back() -> None:
    """In an array of objects, zeros and all."""
    (tensor,) = request_of(["é", "a\0"]).tensors
    assert tensor == Tensor(TensorType.STRING, (2,), ["é".encode(), b"a\0"])
    array = result_of(reply([b"a\0", "é"]), LIMIT_BYTES, None)
    assert array.dtype == object
    assert array.tolist() == [b"a\0", "é".encode()]


def test_results_have_the_form_of_the_question() -> None:
    """One name: an array. A list: by name. None: as many as there are."""
    assert result_of(reply([1]), LIMIT_BYTES, "y").tolist() == [1]
    assert {name: one.tolist() for name, one in result_of(reply([1]), LIMIT_BYTES, ["y"]).items()} == {"y": [1]}
    two = result_of(reply([1], [2]), LIMIT_BYTES, ("y", "x"))
    assert {name: one.tolist() for name, one in two.items()} == {"y": [1], "x": [2]}
    assert result_of(reply([1]), LIMIT_BYTES, None).tolist() == [1]
    assert [one.tolist() for one in result_of(reply([1], [2]), LIMIT_BYTES, None)] == [[1], [2]]


def test_G098_one_name_is_one_output() -> None:
    """Two arrays for it are an error, and so is none."""
    with pytest.raises(GraphPipeError, match="2 outputs, and 1 were asked for"):
        result_of(reply([1], [2]), LIMIT_BYTES, "y")


def test_arrays_are_views_that_cannot_be_written() -> None:
    """On the answer, of which there is no other copy."""
    body = bytes(write_infer_response([to_tensor(np.arange(1000, dtype="f4"))]))
    array = result_of(Reply(body, 200), LIMIT_BYTES, None)
    assert np.shares_memory(array, np.frombuffer(body, "u1"))
    assert not array.flags.writeable


def test_a_shape_that_numpy_has_not_is_an_error_of_the_answer() -> None:
    """A size of zero beside sizes whose product is beyond all bounds."""
    odd = Tensor(TensorType.UINT8, (0, 2**62, 2**62), memoryview(b""))
    with pytest.raises(GraphPipeError, match="cannot be an array") as found:
        array_of(odd, Reply(b"", 200))
    assert (found.value.code, found.value.http_status) == (9, 200)


def test_a_server_is_spoken_to_as_its_url_says() -> None:
    """By HTTP, or raw; connections are kept until it is closed."""
    request = written((), None, b"", scalar_as_vector=False)
    for answer, is_raw in ((page(b"x"), False), (frame(b"x"), True)):
        with serving(answer, is_raw=is_raw) as peer:
            server = Server(f"tcp://{peer.address}" if is_raw else peer.http, Settings(timeout_s=10))
            assert [bytes(server.ask(request).body) for _ in range(2)] == [b"x", b"x"]
            assert peer.connections == 1
            server.close()
            assert peer.gone.wait(10)
            with pytest.raises(RuntimeError, match="closed"):
                server.ask(request)


def test_a_server_that_is_dropped_is_closed() -> None:
    """Without a warning."""
    with serving(page(b"x")) as peer:
        server = Server(peer.http, Settings(timeout_s=10))
        server.ask(written((), None, b"", scalar_as_vector=False))
        del server
        assert peer.gone.wait(10)
