"""`invoker.protocols.graphpipe.page`: a model for browsers."""

from __future__ import annotations

from html import unescape
from html.parser import HTMLParser

from invoker.protocols.graphpipe.page import page
from invoker.tensors import IOMetadata, MetadataResponse, TensorType

METADATA = MetadataResponse(
    "<script>x</script>",
    "1.0",
    "invoker/0",
    "Says & sees",
    (IOMetadata("x", "<b>", (-1, 3), TensorType.FLOAT32), IOMetadata("y")),
    (),
)


def test_G007_a_page_tells_what_metadata_tells() -> None:
    """Names, types, shapes, and where to post."""
    text = page(METADATA, "/graphpipe")
    assert all(one in text for one in ("Float32", "[-1, 3]", "1.0", "/graphpipe", "any", "None."))


def test_nothing_of_the_function_is_markup() -> None:
    """Names and texts are escaped, and elements are closed in order."""
    text = page(METADATA, '/graphpipe/"><i>')
    assert "<script>" not in text
    assert "<i>" not in text
    assert "&lt;b&gt;" in text
    open_tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag != "meta":
                open_tags.append(tag)

        def handle_endtag(self, tag: str) -> None:
            assert open_tags.pop() == tag

    Reader().feed(text)
    assert open_tags == []


def test_the_page_calls_a_model_with_all_of_its_inputs() -> None:
    """By both clients; the simple call of the other package is for one tensor only."""
    x, y = IOMetadata("x"), IOMetadata("a b")
    one = unescape(page(MetadataResponse("m", inputs=(x,), outputs=(y,)), "/m"))
    assert """model.infer({'x': x})""" in one
    assert """remote.execute("http://HOST:PORT/m", x)""" in one
    two = unescape(page(MetadataResponse("m", inputs=(x, y), outputs=(y, x)), "/m"))
    assert """model.infer({'x': x, 'a b': array1})""" in two
    assert """remote.execute_multi("http://HOST:PORT/m", [x, array1], ['x', 'a b'], ['a b', 'x'])""" in two
