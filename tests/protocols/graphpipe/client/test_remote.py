"""The functions of ``graphpipe.remote``, as programs that were written with that package call them."""

from __future__ import annotations

import numpy as np
import pytest

from invoker.client.graphpipe import GraphPipeError, execute, execute_multi, metadata
from invoker.protocols.graphpipe.client import remote
from invoker.protocols.graphpipe.client.requests import written
from invoker.tensors import InferRequest, IOMetadata, MetadataResponse, read_request, write_metadata_response
from tests.protocols.graphpipe.client.peer import Answer, Seen, echo, page, sample, serving


def echoing(seen: Seen) -> Answer:
    """The inputs as outputs."""
    return page(echo(seen))


def asked(seen: Seen) -> InferRequest:
    """What the server was asked."""
    request = read_request(seen.body)
    assert isinstance(request, InferRequest)
    return request


def test_G093_execute_gives_a_single_output_bare() -> None:
    """With names, without, by position."""
    with serving(echoing) as peer:
        found = execute(peer.http, np.float32([[1, 2]]))
        assert (found.dtype, found.tolist()) == (np.float32, [[1, 2]])
        assert execute(peer.http, np.array(7), "n", "m") == 7
        first, second = map(asked, peer.seen)
    assert (first.input_names, first.output_names) == ((), ())
    assert (second.input_names, second.output_names) == (("n",), ("m",))


def test_G093_execute_multi_gives_a_list() -> None:
    """Of one output too, and in the order of names."""
    with serving(echoing) as peer:
        assert execute_multi(peer.http, [np.array(1)], None, None) == [1]
        found = execute_multi(peer.http, [np.array(1), np.array([2])], ["a", "b"], ["x", "y"], "{}")
        assert [one.tolist() for one in found] == [1, [2]]
        assert asked(peer.seen[1]).config == b"{}"


def test_G093_several_outputs_of_execute_are_a_list() -> None:
    """As the server gives them."""
    two = page(echo(Seen(bytes(written((1, 2), None, b"", scalar_as_vector=False)))))
    with serving(two) as peer:
        assert [one.tolist() for one in execute(peer.http, 0)] == [1, 2]


def test_G094_names_that_do_not_match_are_not_sent() -> None:
    """Too few or too many."""
    with serving(echoing) as peer:
        with pytest.raises(ValueError, match="1 input names and 2 inputs"):
            execute_multi(peer.http, [1, 2], ["a"], None)
        assert peer.connections == 0


def test_G098_outputs_that_are_missing_are_an_error() -> None:
    """Else the names would not fit."""
    with serving(echoing) as peer, pytest.raises(GraphPipeError, match="1 outputs, and 2 were asked for") as found:
        execute_multi(peer.http, [1], None, ["a", "b"])
    assert found.value.code == 18


def test_G095_strings_come_back_as_objects() -> None:
    """Whether str or bytes were sent."""
    with serving(echoing) as peer:
        found = execute(peer.http, np.array(["é", b"a\0"], object))
    assert (found.dtype, found.tolist()) == (object, ["é".encode(), b"a\0"])


def test_a_description_is_asked_as_flatbuffers_are() -> None:
    """Texts are bytes, lists have lengths."""
    with serving(page(sample("go_metadata_response"))) as peer:
        model = metadata(peer.http)
    assert (model.Name(), model.InputsLength(), model.OutputsLength()) == (b"echo", 2, 1)
    images = model.Inputs(0)
    assert images.Name() == b"images"
    shape = model.response.inputs[0].shape
    assert images.ShapeAsNumpy().tolist() == list(shape)
    assert [images.Shape(j) for j in range(images.ShapeLength())] == list(shape)
    assert images.Type() == model.response.inputs[0].type
    assert model.Outputs(0).Name() == b"scores"
    assert [one() for one in (model.Version, model.Server, model.Description, images.Description)] == [
        getattr(model.response, name).encode() for name in ("version", "server", "description")
    ] + [model.response.inputs[0].description.encode()]
    with pytest.raises(IndexError):
        model.Inputs(2)


def test_names_types_and_shapes_are_asked_for() -> None:
    """None stands for any size, and for a type that is not known."""
    inputs = (IOMetadata("x", "", (-1, 3), 10), IOMetadata("s", "", (), 12), IOMetadata("q", "", (), 0))
    said = write_metadata_response(MetadataResponse(inputs=inputs, outputs=(IOMetadata("y", "", (2,), 99),)))
    with serving(page(said)) as peer:
        assert remote.get_input_names(peer.http) == ["x", "s", "q"]
        assert remote.get_output_names(peer.http) == ["y"]
        assert remote.get_input_types(peer.http) == [np.dtype("f4"), np.dtype("O"), None]
        assert remote.get_output_types(peer.http) == [None]
        assert remote.get_input_shapes(peer.http) == [[None, 3], [], []]
        assert remote.get_output_shapes(peer.http) == [[2]]


def test_nothing_is_left_open() -> None:
    """Each function closes its connection, also when it fails."""
    with serving(page(b"no", "400 Bad Request")) as peer:
        with pytest.raises(GraphPipeError, match="no"):
            execute(peer.http, 1)
        assert peer.gone.wait(10)
