"""`invoker.codecs.custom`: to which functions a codec belongs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from invoker.author.lift import Function
from invoker.author.prepare import prepare
from invoker.codecs import builtin, custom, register, registered
from invoker.core.catalog import Catalog
from invoker.core.engine import Engine
from invoker.errors import NotAcceptable, SpecError, UnsupportedMediaType
from invoker.message import Message
from invoker.testing import Harness


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    """A test begins without codecs that others registered, and what it registers is gone behind it."""
    before = registered()
    custom._replace(())
    yield
    custom._replace(before)


class Anyones:
    """A codec for all functions of the process."""

    media_types = ("text/x-anyones",)

    def decode(self, message: Message[bytes], type_: Any) -> bytes:
        return message.payload


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Writes modules and gives the last one, imported."""
    monkeypatch.syspath_prepend(tmp_path)
    written: list[str] = []

    def write(**texts: str) -> Any:
        for name, text in texts.items():
            path = tmp_path / (name + ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            written.append(name.replace("/", "."))
        importlib.invalidate_caches()
        return importlib.import_module(written[-1])

    yield write
    for name in [one for one in sys.modules if one.partition(".")[0] in {each.partition(".")[0] for each in written}]:
        del sys.modules[name]


CODEC = """
from invoker import codec
def spelled(text: str) -> str: return text
class Opaque: pass
@codec("text/x-own")
class Own:
    def decode(self, message, type_): return Opaque()
    def encode(self, value, media_type): return b"own"
    def can_decode(self, type_): return type_ is Opaque
WORD = "one"
"""
FUNCTION = "\ndef same(x):\n    return x\n"


def own(function: Any) -> bool:
    """Whether a function that is served has the codec."""
    harness = Harness(function)
    result = harness.invoke(["x"], accept="text/x-own")
    assert isinstance(result.error, NotAcceptable | None)
    return result.error is None


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("head", "has"),
    [
        (CODEC, True), ("import own_codec", True), ("from own_codec import Own", True), ("import own_far", True),
        ("from own_codec import spelled as word", True), ("from own_far import far", True), ("import json", False),
    ],
)  # fmt: skip
def test_a_codec_belongs_to_the_functions_that_reach_its_module(
    modules: Callable[..., Any], head: str, *, has: bool, is_first: bool
) -> None:
    """Whoever imported it first; others in this process do not have it, so their order does not count."""
    far = "import own_codec\ndef far(): pass\n"
    modules(own_codec=CODEC, own_far=far, own_first="import own_codec" if is_first else "")
    mine = modules(own_mine=head + FUNCTION)
    modules(own_last="import own_codec")
    assert own(mine.same) is has
    assert own("own_mine:same") is has


def test_whose_import_registers_a_codec_has_it(modules: Callable[..., Any]) -> None:
    """Although nothing in its globals leads there, as after ``from own_codec import WORD``."""
    assert own(modules(own_codec=CODEC, own_mine="from own_codec import WORD" + FUNCTION).same)


def test_a_package_registers_for_its_modules(modules: Callable[..., Any]) -> None:
    """What the package imports is imported with each of its modules."""
    package = {"own_pkg/__init__": "from own_pkg import codecs", "own_pkg/codecs": CODEC, "own_pkg/mine": FUNCTION}
    assert own(modules(**package).same)


def test_the_module_that_was_named_counts_too(modules: Callable[..., Any]) -> None:
    """It may serve a function that was written elsewhere."""
    modules(own_lib=FUNCTION, own_served=CODEC + "from own_lib import same\n")
    assert own("own_served:same")
    assert own(str(Path(sys.modules["own_served"].__file__ or "")) + ":same")
    assert not own("own_lib:same")


def test_types_are_those_of_the_functions_codecs(modules: Callable[..., Any]) -> None:
    """An annotation that only a foreign codec makes is refused at start."""
    module = modules(own_codec=CODEC + "def taken(x: Opaque) -> int:\n    return 1\n")
    assert Harness(module.taken).run([Message(b"", media_type="text/x-own")]) == [1]

    def foreign(x: module.Opaque) -> int:  # type: ignore[name-defined]
        return 1

    with pytest.raises(SpecError, match="Opaque"):
        Harness(foreign)


def test_each_function_of_a_server_has_its_own(modules: Callable[..., Any]) -> None:
    """One engine serves all; what `register` was given belongs to each of them."""
    modules(own_lib="\ndef other(x):\n    return x\n", own_served=CODEC + FUNCTION)
    register(Anyones)
    functions = [prepare(name)[0].function for name in ("own_lib:other", "own_served:same")]
    engine = Engine(Catalog(functions), builtin(entry_points=False))
    assert [_takes(engine, one, "text/x-anyones") for one in functions] == [True, True]
    assert [_takes(engine, one, "text/x-own") for one in functions] == [False, True]
    assert [_takes(engine, one, "application/json") for one in functions] == [True, True]


def test_functions_make_a_codec_for_their_module(modules: Callable[..., Any]) -> None:
    """As the decorator does, where the module calls `codec` in a function of its own, too."""
    called = "from invoker import codec\ndef add():\n    codec('text/x-own', encode=lambda value: b'own')\nadd()\n"
    assert own(modules(own_called=called + FUNCTION).same)
    assert not own(modules(own_lib=FUNCTION).same)


def _takes(engine: Engine, function: Function, media_type: str) -> bool:
    try:
        engine.registry_for(function).decoder(media_type, Any)
    except UnsupportedMediaType:
        return False
    return True
