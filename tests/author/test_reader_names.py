"""What `invoker.author.reader.read` makes of what stands beside a signature: media types, name, version."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np

from invoker.author.decorator import function
from invoker.author.reader import read


def square(x: int) -> int:
    return x * x


def topk(xs: Iterator[int], k: int) -> Iterator[int]: ...


def test_media_types_are_given_to_all_or_by_name() -> None:
    """One, several, or a mapping from names."""
    spec = read(
        function(output_types="image/png", input_types={"k": ["text/csv", "text/plain"]})(functools.partial(topk))
    )
    assert [stream.media_types for stream in spec.inputs] == [(), ("text/csv", "text/plain")]
    assert spec.outputs[0].media_types == ("image/png",)


def test_the_name_comes_from_the_decorator_the_caller_or_the_function() -> None:
    """In this order."""
    assert read(function(name="a")(lambda x: x), name="b").name == "a"
    assert read(lambda x: x, name="b").name == "b"


def test_G087_the_version_is_said_or_that_of_the_module() -> None:
    """However the module was loaded."""
    exec("def fn(x): ...", module := {"__version__": "3"})
    plain = module["fn"]
    assert read(plain).version == "3"
    assert read(plain, entrypoint="numpy.linalg:norm").version == np.__version__
    assert read(square).version == ""
    assert read(function(version="1.2")(plain), entrypoint="numpy.linalg:norm").version == "1.2"
    exec("def fn(x): ...", module := {"__version__": (3, 1)})
    assert read(module["fn"]).version == ""
