"""Options of one protocol: a spec holds them by class, and what is wrong with one is one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from invoker import function
from invoker.author.protocoloptions import ProtocolOption, title
from invoker.author.reader import read
from invoker.author.spec import FunctionSpec
from invoker.errors import SpecError


@dataclass(frozen=True, slots=True)
class Colour(ProtocolOption):
    protocol: ClassVar[str] = "toy"
    name: str = "red"


def plain(x: int) -> int:
    return x


def test_a_spec_holds_options_by_class() -> None:
    """A protocol asks for its own; a function without a decorator has none."""
    spec = read(function(options=[Colour("blue")])(lambda x: x))
    assert spec.options.get(Colour) == Colour("blue")
    assert read(plain).options == {}
    assert title(Colour) == "toy.Colour"


def test_specs_with_options_are_told_apart_and_may_be_keys() -> None:
    """A mapping cannot be hashed, so what it holds counts for equality alone."""
    one, other = FunctionSpec("x"), FunctionSpec("x", options={Colour: Colour()})
    assert one != other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (Colour(), "@function(options=Colour(name='red')) of 'fn' is not a list; write options=["),
        ("rows", "@function(options='rows') of 'fn' is not a list; write options=["),
        (None, "@function(options=None) of 'fn' is not a list; write options=["),
        ([3], "@function(options=[3]) of 'fn' has a int, which is not an option of a protocol; write options=["),
        (["rows"], "@function(options=['rows']) of 'fn' has a str, which is not an option of a protocol"),
        ([Colour], "@function(options=[toy.Colour]) of 'fn' has a class; write toy.Colour() with its values"),
        ([Colour(), Colour("blue")], "@function(options=[...]) of 'fn' has toy.Colour twice; give it once"),
    ],
)
def test_what_is_no_option_is_refused_with_the_name_of_the_function(options: Any, text: str) -> None:
    """One sentence that says what to write."""

    def fn(x: int) -> int:
        return x

    with pytest.raises(SpecError, match=re.escape(text)) as refused:
        function(options=options)(fn)
    assert "\n" not in refused.value.detail
    with pytest.raises(SpecError, match=re.escape(text.replace("'fn'", "'other'"))):
        function(name="other", options=options)(fn)


def test_importing_a_protocol_for_its_options_is_light() -> None:
    """Neither its sessions, nor gRPC, asyncio or numpy are loaded; nor are the options before somebody asks."""
    code = (
        "import sys\n"
        "from invoker import function\n"
        "before = set(sys.modules)\n"
        "from invoker.protocols import evergreen, graphpipe, toolbridge\n"
        "print(sorted(one for one in set(sys.modules) - before if one.endswith('.options')))\n"
        "graphpipe.Casting(), graphpipe.Rows(), evergreen.Nodes(), toolbridge.ToolInfo()\n"
        "own = sorted(one for one in set(sys.modules) - before if one.startswith('invoker.'))\n"
        "print(own)\n"
        "print([one for one in ('asyncio', 'grpc', 'numpy', 'google.protobuf') if one in set(sys.modules) - before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    asked, own, heavy = done.stdout.splitlines()
    assert (asked, heavy) == ("[]", "[]")
    rooms = {one.split(".")[1] for one in eval(own)}
    assert rooms <= {"protocols", "author", "message"}
    assert [one for one in eval(own) if ".protocols." in one and one.count(".") > 2] == [
        "invoker.protocols.evergreen.options",
        "invoker.protocols.graphpipe.options",
        "invoker.protocols.toolbridge.options",
    ]
