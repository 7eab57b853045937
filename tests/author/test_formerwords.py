"""Each former keyword of `@function` means the option that it became, and its warning names that line exactly."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import Output, function
from invoker.author.formerwords import FORMER, Former
from invoker.author.reader import read
from invoker.errors import SpecError

Array = NDArray[np.float32]

VALUES: dict[str, list[Any]] = {
    "rows": [True, False],
    "casting": ["same_kind", "no"],
    "output_casting": ["same_kind", "no"],
    "sequence": [True, False, "total", ("out", "total"), []],
    "retain": [True, False, "total", ("out", "total"), []],
    "batch": [True, False],
    "tools": ["other", ("one", "other"), []],
    "cacheable": [True, False],
}
GOES = r"will be removed in invoker 0\.2; write"
CASES = [(word, value) for word, values in VALUES.items() for value in values]


def fresh() -> Any:
    def fn(xs: Iterator[Array]) -> Iterator[Output[Array]]: ...

    def plain(x: Array) -> Array: ...  # type: ignore[empty-body]  # its signature counts

    return fn, plain


def test_every_former_keyword_is_tried() -> None:
    """So a word that joins them later is tried, too."""
    assert VALUES.keys() == FORMER.keys() == Former.__annotations__.keys()


@pytest.mark.parametrize(("word", "value"), CASES, ids=str)
def test_a_former_keyword_and_its_option_give_equal_specs(word: str, value: Any) -> None:
    """The option is evaluated as the warning writes it."""
    _, plain = fresh()
    outputs = ("total",) if word not in ("sequence", "retain") else ("out", "total")
    with pytest.warns(DeprecationWarning, match=GOES) as told:
        old = read(function(**{"outputs": outputs, word: value})(several if len(outputs) > 1 else plain))
    new = read(by(told[0], outputs)(several if len(outputs) > 1 else plain))
    assert old == new
    assert len(told) == 1
    assert told[0].filename == __file__


def test_several_former_keywords_are_one_line() -> None:
    """Words of one option become one option."""
    _, plain = fresh()
    with pytest.warns(DeprecationWarning, match=GOES) as told:
        old = read(
            function(casting="same_kind", output_casting="same_kind", retain=False, batch=True, cacheable=True)(plain)
        )
    assert str(told[0].message) == (
        "@function(casting='same_kind', output_casting='same_kind', retain=False, batch=True, "
        "cacheable=True) will be removed in "
        "invoker 0.2; write @function(options=[graphpipe.Casting(inputs='same_kind', outputs='same_kind'), "
        "evergreen.Nodes(retain=False), toolbridge.ToolInfo(batch=True, cacheable=True)]), and `from invoker.protocols "
        "import evergreen, graphpipe, toolbridge`"
    )
    assert old == read(by(told[0], None)(plain))


def test_what_is_said_besides_stays() -> None:
    """Former keywords stand beside others and beside options; one option that comes both ways is refused."""
    from invoker.protocols import evergreen, graphpipe

    _, plain = fresh()
    with pytest.warns(DeprecationWarning, match=r"write @function\(name=\.\.\., options=\[graphpipe"):
        spec = read(function(name="n", rows=True, options=[evergreen.Nodes(retain=False)])(plain))
    assert (spec.name, spec.options) == (
        "n",
        {graphpipe.Rows: graphpipe.Rows(), evergreen.Nodes: evergreen.Nodes(retain=False)},
    )
    with (
        pytest.warns(DeprecationWarning, match=GOES),
        pytest.raises(SpecError, match=r"of 'plain' has graphpipe\.Rows twice; give it once"),
    ):
        function(rows=True, options=[graphpipe.Rows()])(plain)


@pytest.mark.parametrize("word", VALUES)
def test_a_word_of_a_protocol_that_is_not_installed_is_one_sentence(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It names the function, the word and the protocol."""
    protocol = FORMER[word][0]
    monkeypatch.setitem(sys.modules, f"invoker.protocols.{protocol}.options", None)
    _, plain = fresh()
    value = VALUES[word][0]
    text = f"@function({word}={value!r}) of 'plain' is for the protocol {protocol}, which is not installed"
    with pytest.warns(DeprecationWarning, match=GOES), pytest.raises(SpecError, match=re.escape(text)):
        function(**{word: value})(plain)


@pytest.mark.parametrize("word", VALUES)
def test_a_value_that_the_option_cannot_have_is_refused(word: str) -> None:
    """As where the option is written."""
    with pytest.raises(SpecError, match=r"must be|it can be"):
        function(**{word: 3.5})


def several(xs: Iterator[Any]) -> tuple[Iterator[Any], Iterator[Any]]: ...  # type: ignore[empty-body]  # as above


def by(warning: warnings.WarningMessage, outputs: tuple[str, ...] | None) -> Any:
    """The decorator that a warning tells to write, run as it is written."""
    line, imported = re.search(  # type: ignore[union-attr]  # the warning has them
        r"write @(function\(.*\)), and `from invoker\.protocols import (.*)`$", str(warning.message)
    ).groups()
    names = {name: importlib.import_module(f"invoker.protocols.{name}") for name in imported.split(", ")}
    return eval(line.replace("outputs=...", f"outputs={outputs!r}"), {"function": function, **names})
