"""Modules in the place of packages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires

import pytest

from invoker.author.shadows import FIRST, NAMES, shadowed
from tests.serving import ROOT

SOURCE = "def f(x: int) -> int:\n    return x\n"


@pytest.fixture(autouse=True)
def _fresh():
    shadowed.cache_clear()
    yield
    shadowed.cache_clear()


def imported() -> set[str]:
    """The packages of others that the code imports, wherever it does."""
    found = set()
    for path in (ROOT / "invoker").rglob("*.py"):
        if path.name == "testing.py":
            continue
        for one in ast.walk(ast.parse(path.read_text())):
            if isinstance(one, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in one.names}
            elif isinstance(one, ast.ImportFrom) and one.module and not one.level:
                found.add(one.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"invoker", "_typeshed"}


def needed(distribution: str, seen: set[str]) -> set[str]:
    """Distributions that one needs, and those that these need."""
    name = re.split(r"[^\w.-]", distribution)[0]
    if name in seen or "extra ==" in distribution:
        return seen
    seen.add(name)
    try:
        for one in requires(name) or ():
            needed(one, seen)
    except PackageNotFoundError:  # for another system
        pass
    return seen


def test_each_package_that_is_imported_is_known():
    """By us, and by h2, watchfiles and the others for us."""
    of = packages_distributions()
    assert imported() <= set(NAMES)
    found = re.search(r"\ndependencies = (\[.*?\])", (ROOT / "pyproject.toml").read_text(), re.DOTALL)
    assert found is not None
    base = ast.literal_eval(found[1])
    wanted = {re.sub(r"[-_.]+", "-", one).lower() for base_one in base for one in needed(base_one, set())}
    tops = {
        top
        for top, dists in of.items()
        if any(re.sub(r"[-_.]+", "-", one).lower() in wanted for one in dists) and not top.startswith("_")
    }
    # `multipart` is an old name of python_multipart, which nobody here uses.
    assert {one for one in tops if one.isidentifier()} - {"multipart"} <= set(NAMES)


@pytest.fixture(scope="module")
def installed():
    """The packages that can be imported; warnings of old ones are none of ours."""
    code = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
        print(name)
    except Exception:
        pass
"""
    words = [sys.executable, "-W", "ignore", "-c", code, *NAMES]
    return subprocess.run(words, cwd="/", check=True, capture_output=True, text=True, timeout=60).stdout.split()


@pytest.mark.parametrize("name", NAMES)
def test_a_module_in_the_place_of_a_package_is_named(tmp_path, name, installed):
    """As a file and as a package; where no package of that name is installed, nothing is in anybody's place."""
    assert shadowed(str(tmp_path)) == ""
    shadowed.cache_clear()
    (tmp_path / f"{name}.py").write_text(SOURCE)
    told = shadowed(str(tmp_path))
    if name in installed:
        assert f"{name}.py has the name of the package '{name}'" in told


def test_where_the_packages_are_installed_nothing_is_in_their_place(tmp_path, monkeypatch):
    """As with ``pip install --target .``."""
    (tmp_path / "h2").mkdir()
    (tmp_path / "h2" / "__init__.py").write_text("")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert shadowed(str(tmp_path)) == ""


LATER = ("h2", "hpack", "hyperframe", "grpc", "google")


@pytest.mark.parametrize(
    ("name", "entrypoint"),
    [
        *((name, "{}:f") for name in (*FIRST, *LATER)),
        *((name, f"fine{one}:f") for name in (FIRST[0], "h2") for one in ("", ".py")),
    ],
)
def test_such_a_module_is_refused_at_the_start_by_name(tmp_path, name, entrypoint):
    """Whatever is served of that folder: it is looked at before anybody reads what that is, so two names show it."""
    for one in (name, "fine"):
        (tmp_path / f"{one}.py").write_text(SOURCE)
    command = [sys.executable, "-m", "invoker", entrypoint.format(name)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=20)
    assert ended.returncode == 1
    assert f"{name}.py has the name of the package '{name}'" in ended.stderr
    assert "Traceback" not in ended.stderr
