"""`invoker.moved`: modules are found by their old names, as the same objects, and whoever imports them is warned."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from invoker.moved import DISTRIBUTIONS, GONE, KEPT, MOVED, NAMES, new_name

FORMER = (Path(__file__).parent / "former_modules.txt").read_text().split()
"""Each public module of the tree before the third drawing, by its path of then."""

OLD = sorted(name for name in MOVED if not name.endswith("."))


@pytest.mark.parametrize("name", OLD)
def test_an_old_name_gives_the_very_module(name: str) -> None:
    """Which keeps its own name and spec; names that are public do not warn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sys.modules.pop(f"invoker.{name}", None)
        found = importlib.import_module(f"invoker.{name}")
    new = new_name(f"invoker.{name}")
    assert found is importlib.import_module(new)
    assert found.__name__ == new
    assert found.__spec__ is not None
    assert found.__spec__.name == new
    mine = [one for one in caught if f"invoker.{name} is now {new};" in str(one.message)]
    assert len(mine) == (name.partition(".")[0] not in KEPT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("invoker.drive.loop.reactor", "invoker.execution.loop.reactor"),
        ("invoker.drive.isolated.pool", "invoker.execution.isolation.pool"),
        ("invoker.client.riff.call", "invoker.protocols.riff.client.call"),
        ("invoker.client.riff", ""),
        ("invoker.protocols.riff.session", ""),
        ("invoker.protocols.riff.http", "invoker.protocols.web.http"),
        ("invoker.conformance", "invoker_conformance"),
        ("invoker.conformance.riff.rules", "invoker_conformance.riff.rules"),
        ("invoker.message", ""),
        ("invoker", ""),
        ("other.drive", ""),
    ],
)
def test_a_row_holds_for_what_lies_below_it(old: str, new: str) -> None:
    """Unless that has a row of its own; what has not moved has no other name."""
    assert new_name(old) == new


@pytest.mark.parametrize("package", sorted({one.split(".")[1] for one in FORMER if "." in one}))
def test_each_module_of_before_the_move_is_found(package: str) -> None:
    """By its path of then, with a warning if that has changed and is not a public name that stays."""
    for name in (one for one in FORMER if f"{one}.".startswith(f"invoker.{package}.")):
        has_moved = bool(new_name(name)) or name.removeprefix("invoker.") in GONE
        if has_moved:
            sys.modules.pop(name, None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name != "dspy":  # agents run on it where it is installed
                    raise
        told = [one for one in caught if str(one.message).startswith(f"{name} is now ")]
        assert len(told) == (has_moved and package not in KEPT), name
    for name in [one for one in sys.modules if new_name(one)]:
        del sys.modules[name]  # what follows sees each old name for the first time


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [(module, old, new) for module, names in NAMES.items() for old, new in names.items()],
)
def test_a_class_of_authors_is_found_by_its_old_name(module: str, old: str, new: str) -> None:
    """Those of CONTRIBUTING's protocol, and what goes with them; where it was and where it is, with a warning."""
    where, _, name = new.rpartition(":")
    former = next((one for one in FORMER if new_name(one) == f"invoker.{module}"), f"invoker.{module}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if new_name(former):  # one that has not moved must not be there twice
            sys.modules.pop(former, None)
        found = importlib.import_module(former)
        wanted = getattr(importlib.import_module(where) if where else found, name)
    text = rf"\.{old} is now {where or f'invoker.{module}'}\.{name}; the old name will be removed in release 0.2$"
    with pytest.warns(DeprecationWarning, match=text):
        assert getattr(found, old) is wanted


def test_other_names_are_not_found() -> None:
    """With Python's own words; also those of a module that is gone, for which its warning says what there is now."""
    for module, name in (("invoker.core.steps", "Never"), ("invoker.author.traits", "ModelTraits")):
        sys.modules.pop("invoker.author.traits", None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = importlib.import_module(module)
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute '{name}'"):
            getattr(found, name)
    sys.modules.pop("invoker.author.traits", None)
    with pytest.warns(
        DeprecationWarning, match=r"traits is now options of protocols .*graphpipe.*; the old name will " r"be removed"
    ):
        importlib.import_module("invoker.author.traits")


def test_a_module_is_never_there_twice() -> None:
    """By whichever name it is imported first, and by whichever form of import."""
    code = (
        "import warnings; warnings.simplefilter('error', DeprecationWarning)\n"
        "try:\n    import invoker.doors.tls\nexcept DeprecationWarning as warning:\n    print(warning)\n"
        "warnings.simplefilter('ignore')\n"
        "from invoker.doors.http import h1\nimport invoker.transports.http.h1 as new\n"
        "import invoker.client.riff.call as call, invoker.client.riff as riff\n"
        "assert h1 is new and riff.Call is call.Call\n"
        "import invoker.secagg.packing as packing\nfrom invoker.protocols.federated.wire import packing as same\n"
        "assert packing is same\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(
        "invoker.doors is now invoker.transports; the old name will be removed in release 0.2"
    )


def test_what_never_was_is_not_found() -> None:
    """With Python's own words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ModuleNotFoundError, match=r"invoker\.(doors|transports)\.never"):
            importlib.import_module("invoker.doors.never")


@pytest.mark.parametrize("name", sorted(DISTRIBUTIONS))
def test_a_distribution_of_its_own_is_found_by_its_old_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is installed; where it is not, the error names what one installs."""
    package, distribution = DISTRIBUTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DeprecationWarning, match=f"invoker.{name} is now {package};"):
            importlib.import_module(f"invoker.{name}")
        warnings.simplefilter("ignore")
        assert importlib.import_module(f"invoker.{name}") is importlib.import_module(package)
        monkeypatch.delitem(sys.modules, f"invoker.{name}")
        monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]  # as import does for what is not there
        with pytest.raises(ModuleNotFoundError, match=f"pip install {distribution}$") as caught:
            importlib.import_module(f"invoker.{name}")
    assert caught.value.name == f"invoker.{name}"


def test_a_module_that_its_distribution_lacks_is_not_found() -> None:
    """With Python's own words, for the distribution is there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ModuleNotFoundError, match=r"No module named 'invoker_conformance.never'"):
            importlib.import_module("invoker.conformance.never")


def test_a_program_runs_by_its_old_name() -> None:
    """A worker from before a reload starts its isolated children so; this one gets no pipe."""
    command = [sys.executable, "-W", "ignore", "-m", "invoker.process.isolated"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "socket.socket(fileno=int(argv[0]))" in done.stderr
    assert "_Alias" not in done.stderr
