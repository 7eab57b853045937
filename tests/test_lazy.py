"""Names whose modules are imported when somebody asks for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import invoker.client
from invoker.lazy import lazy


def test_a_name_is_imported_when_somebody_asks() -> None:
    """Before that, no protocol is loaded and no grpc; every name is listed from the beginning."""
    code = (
        "import sys, invoker.client\n"
        "assert set(invoker.client.__all__) <= set(dir(invoker.client))\n"
        "print([one for one in sys.modules if one == 'grpc' or one.startswith('invoker.protocols')])\n"
        "from invoker.client import RiffClient\n"
        "print(sorted({one.split('.')[2] for one in sys.modules if one.startswith('invoker.protocols.')}))\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert shown.stdout.splitlines() == ["[]", "['riff']"]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    """So `hasattr` and `from ... import` work as with any module."""
    with pytest.raises(AttributeError, match=r"module 'invoker\.client' has no attribute 'Nothing'"):
        invoker.client.Nothing  # noqa: B018


def test_what_was_found_is_kept() -> None:
    """The second time, the package has the name itself."""
    get, listed = lazy(__name__, {"later": "found_later"}, "tests.client")
    assert "found_later" in listed()
    assert get("found_later") is globals()["found_later"]
