"""Loading entrypoints: what works, and one sentence for each way in which it does not."""

from __future__ import annotations

import os
import py_compile
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import cloudpickle
import pytest

from invoker.author.loader import Catalogue, load
from invoker.errors import HookError, LoadError, SpecError
from tests.forget import forget

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Write a module into the current directory, which is a new one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    yield write_file
    forget(tmp_path, before)


def reason(entrypoint: str, **options: bool) -> str:
    with pytest.raises(LoadError) as caught:
        load(entrypoint, **options)
    assert "\n" not in caught.value.detail
    assert caught.value.exit_code == 1
    return caught.value.detail


def test_R008_a_module_is_found_in_the_current_directory(write: Write) -> None:
    """The directory is put on the path."""
    write("mine_a.py", "def fn(x): return x + 1")
    assert load("mine_a:fn")(1) == 2


def test_R008_attributes_may_be_dotted(write: Write) -> None:
    """Also those of an instance or a class."""
    write("mine_b.py", "class A:\n  def run(self, x): return x\n  @staticmethod\n  def free(x): return -x\na = A()")
    assert load("mine_b:a.run")(1) == 1
    assert load("mine_b:A.free")(1) == -1


def test_R008_a_file_is_loaded_by_its_path(write: Write) -> None:
    """Its neighbours are importable; a name that is taken does no harm."""
    data = "@dataclass\nclass D:\n  x: 'int'\n"
    imports = "from neighbour_c import ONE\nfrom dataclasses import dataclass\n"
    write("deep/json.py", f"{imports}{data}def fn(x): return x + ONE")
    write("deep/neighbour_c.py", "ONE = 1")
    fn = load("./deep/json.py:fn")
    assert fn(1) == 2
    assert load("deep/json.py:fn") is fn
    import json

    assert hasattr(json, "dumps")


def test_R008_a_missing_module_names_the_nearest(write: Write) -> None:
    """Modules, packages and their modules."""
    write("squares.py", "")
    write("pack/__init__.py", "")
    write("pack/inner.py", "fn = len")
    assert reason("sqares:fn") == "there is no module 'sqares'; did you mean 'squares'?"
    assert "did you mean 'pack.inner'?" in reason("pack.iner:fn")
    assert reason("pakc.inner:fn") == "there is no module 'pakc', which 'pakc.inner' names; did you mean 'pack.inner'?"
    load("pack.inner:fn")
    assert "did you mean 'pack.inner:fn'?" in reason("pack.inner.fn")
    assert "run from the directory that holds zzzzqqq.py" in reason("zzzzqqq:fn")
    assert reason("zzzzqqq.sub:fn").startswith("there is no module 'zzzzqqq' for 'zzzzqqq.sub' in /")


def test_R008_a_missing_attribute_names_the_nearest(write: Write) -> None:
    """Or lists the functions."""
    write("mine_d.py", "def square(x): ...\ndef cube(x): ...\nTABLE = {}")
    assert reason("mine_d:sqaure") == "'mine_d' has no 'sqaure'; did you mean 'square'?"
    assert reason("mine_d:zzz") == "'mine_d' has no 'zzz'; its functions are cube, square"
    imports = "from dataclasses import dataclass\nfrom typing import Literal, Optional\n"
    write("mine_e.py", imports + "".join(f"def f{one:02}(x): ...\n" for one in range(12)))
    listed = ", ".join(f"f{one:02}" for one in range(10))
    assert reason("mine_e:zzz") == f"'mine_e' has no 'zzz'; its functions are {listed} and 2 more"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("{}", "is a dict, which cannot be called; name a function"),
        ("[1]", "is a list"),
        ("1", "is an int"),
        ("__import__('os')", "is a module, which cannot be called; name one of its functions: 'os:function'"),
        ("(i for i in [])", "is a generator, which cannot be called; name the function itself"),
    ],
)
def test_R008_what_cannot_be_called_is_refused(write: Write, value: str, text: str) -> None:
    """Its type is named."""
    write("mine_e.py", f"it = {value}")
    assert text in reason("mine_e:it")


def test_a_coroutine_object_is_refused_without_a_warning(write: Write) -> None:
    """It is closed, so nobody waits for it."""
    write("mine_f.py", "async def fn(): ...\nit = fn()")
    assert "is a coroutine, which cannot be called; name the function itself" in reason("mine_f:it")


def test_a_method_of_a_class_needs_an_instance(write: Write) -> None:
    """The fix is written out."""
    write("mine_g.py", "class Model:\n  def run(self, x): ...")
    assert "(it = Model()) and name 'mine_g:it.run'" in reason("mine_g:Model.run")


def test_a_syntax_error_is_told_with_file_and_line(write: Write) -> None:
    """In the module itself or in one that it imports."""
    write("broken_a.py", "x = 1\ndef fn(:\n  pass")
    write("imports_broken.py", "import broken_a")
    for entrypoint in ("broken_a:fn", "./broken_a.py:fn", "imports_broken:fn"):
        assert "has a syntax error at broken_a.py:2: invalid syntax in 'def fn(:'" in reason(entrypoint)


def test_a_missing_dependency_is_not_masked(write: Write) -> None:
    """It is the dependency that is missing, not the module."""
    write("needs.py", "import os\nimport pandaz_zz.frame\ndef fn(x): ...")
    expected = "'needs' needs 'pandaz_zz', which is not installed at needs.py:2; install it: pip install pandaz_zz"
    assert reason("needs:fn") == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numpy", None)
        write("arrays.py", "import numpy as np\ndef fn(x): ...")
        assert reason("arrays:fn").endswith("at arrays.py:1; install it: pip install numpy")
    write("typo.py", "import jsn\ndef fn(x): ...")
    assert "did you mean 'json'?" in reason("typo:fn")
    write("from_typo.py", "from json import dump_s\ndef fn(x): ...")
    assert reason("from_typo:fn") == (
        "'from_typo' cannot be imported: cannot import name 'dump_s' from 'json' at from_typo.py:1; correct that name"
    )


def test_an_exception_at_import_is_one_line_with_the_authors_line(write: Write) -> None:
    """The innermost line of the author's own, not of a library; the traceback is the cause."""
    write("raises.py", "import json\ndef parse():\n  return json.loads('{')\nparse()")
    text = reason("raises:fn")
    assert text.startswith("'raises' raised JSONDecodeError: Expecting property name")
    assert "at raises.py:3 when it was imported" in text
    with pytest.raises(LoadError) as caught:
        load("raises:fn")
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_script_that_exits_is_told(write: Write) -> None:
    """The guard is named."""
    write("script.py", "import sys\nsys.exit(2)")
    assert reason("script:fn") == (
        "'script' called sys.exit(2) when it was imported at script.py:2; "
        "move what the script does under `if __name__ == '__main__':`"
    )


def test_errors_of_our_own_decorator_pass_through(write: Write) -> None:
    """They are one sentence already; their class stays what it is."""
    write("misused.py", "from invoker import function\n@function(styl='x')\ndef fn(x): ...")
    with pytest.raises(SpecError, match="did you mean 'style'"):
        load("misused:fn")
    write("unplaced.py", "raise __import__('invoker').errors.SpecError('mine, at unplaced.py:1')")
    with pytest.raises(SpecError, match=r"mine, at unplaced\.py:1$"):
        load("unplaced:fn")
    write("hooked.py", "from invoker.errors import HookError\nraise HookError('mine')")
    with pytest.raises(HookError, match="mine"):
        load("hooked:fn")


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("batch_max=-3", "@function(batch_max=-3) must be a whole number of at least 1"),
        (
            "options=[graphpipe.Casting('samekind')]",
            "graphpipe.Casting(inputs='samekind') is unknown; it can be 'no', 'same_kind'",
        ),
        ("options=['rows']", "@function(options=['rows']) of 'fn' has a str, which is not an option of a protocol"),
        ("inputs={'x': Tensor('float3')}", "Tensor('float3'): there is no such type; did you mean 'float32'?"),
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def", "class"])
def test_options_that_are_refused_have_their_place(write: Write, option: str, text: str, kind: str) -> None:
    """The function that is decorated, and the line of the decorator."""
    tail = "" if kind == "class" else "(x)"
    above = "from invoker import Tensor, function\nfrom invoker.protocols import graphpipe\ndef other(x): ...\n\n"
    write("placed.py", f"{above}@function({option})\n{kind} fn{tail}: ...")
    with pytest.raises(SpecError) as caught:
        load("placed:other")
    assert text in caught.value.detail
    assert caught.value.detail.endswith("('fn' at placed.py:5)")
    assert str(caught.value) == f"invoker: {caught.value.detail}"


def test_what_is_refused_outside_of_a_decorator_has_its_line(write: Write) -> None:
    """Such as a declaration that functions share."""
    write("shared.py", "from invoker import Tensor\nX = Tensor('float3')\ndef fn(x): ...")
    with pytest.raises(SpecError, match=r"\(at shared\.py:2\)$"):
        load("shared:fn")


@pytest.mark.parametrize(
    ("entrypoint", "text"),
    [
        ("", "no function was named"),
        (":fn", "names no module"),
        ("mod:", "names no function"),
        ("my-mod:fn", "did you mean 'my_mod'"),
        ("mod:1x", "'1x' is not the name of a function"),
        ("gone.py:fn", "there is no file 'gone.py'"),
        ("nowhere/gone.py:fn", "nor its directory"),
        ("gone.pkl", "there is no file 'gone.pkl'"),
        ("./:fn", "is a directory"),
    ],
)
def test_what_is_no_entrypoint_is_told(write: Write, entrypoint: str, text: str) -> None:
    """With what was expected."""
    assert text in reason(entrypoint)


def test_a_misspelt_file_names_the_nearest(write: Write) -> None:
    """In its directory."""
    write("squares.py", "")
    assert "did you mean 'squares.py'?" in reason("sqares.py:fn")


def test_a_file_that_is_no_python_is_told(write: Write) -> None:
    """Its suffix says so."""
    write("notes.txt", "")
    assert "is not a Python file" in reason("./notes.txt:fn")


def test_a_module_alone_gives_its_catalogue(write: Write) -> None:
    """The decorated functions, each once."""
    write("many.py", "from invoker import function\n@function\ndef a(x): ...\n@function(name='z')\ndef b(x): ...\n"
          "def c(x): ...\nalias = a")  # fmt: skip
    found = load("many")
    assert isinstance(found, Catalogue)
    assert list(found.functions) == ["a", "b"]


def test_a_module_alone_gives_its_only_function(write: Write) -> None:
    """Private and imported ones do not count; a class with __call__ will do."""
    write("single.py", "from json import dumps\ndef _help(): ...\ndef fn(x): return 7")
    assert load("single")(0) == 7
    assert load("./single.py")(0) == 7
    write("classy.py", "class Model:\n  def __call__(self, x): ...\nclass Row: ...")
    assert load("classy").__name__ == "Model"


def test_two_functions_where_one_is_needed_are_named(write: Write) -> None:
    """So are none."""
    write("two.py", "def a(x): ...\ndef b(x): ...")
    assert reason("two").startswith("'two' has 2 functions (a, b) where one is needed; name one as 'two:a'")
    write("none.py", "X = 1")
    assert "defines no public function" in reason("none")


def test_a_pickle_is_loaded_only_when_allowed(write: Write, tmp_path: Path) -> None:
    """The refusal says what it risks."""
    path = tmp_path / "fn.pkl"
    path.write_bytes(cloudpickle.dumps(lambda x: x + 1))
    assert "runs whatever code it holds" in reason("fn.pkl")
    assert load("fn.pkl", allow_pickle=True)(1) == 2
    path.write_bytes(b"garbage")
    assert "cannot be unpickled: UnpicklingError" in reason("fn.pkl", allow_pickle=True)
    path.write_bytes(cloudpickle.dumps({}))
    assert "is a dict, which cannot be called" in reason("fn.pkl", allow_pickle=True)
    path.write_bytes(b"czzz_missing\nfn\n.")
    assert "needs the module 'zzz_missing'" in reason("fn.pkl", allow_pickle=True)


@pytest.mark.parametrize("entrypoint", ["counting:fn", "./counting.py:fn"])
def test_R010_fresh_executes_the_module_again(write: Write, entrypoint: str) -> None:
    """Leaked state is gone, edits within the same second are seen, the old module object lives on."""
    write("counting.py", "count = 0\ndef fn():\n  global count\n  count += 1\n  return count")
    first = load(entrypoint)
    assert (first(), first(), load(entrypoint)()) == (1, 2, 3)
    second = load(entrypoint, fresh=True)
    assert (second(), first()) == (1, 4)
    write("counting.py", "count = 5\ndef fn():\n  global count\n  count += 1\n  return count")
    assert load(entrypoint, fresh=True)() == 6


@pytest.mark.parametrize("entrypoint", ["flaky:fn", "./flaky.py:fn"])
def test_R010_a_failed_fresh_load_leaves_the_old_module(write: Write, entrypoint: str) -> None:
    """A syntax error during development can be mended."""
    write("flaky.py", "def fn(): return 1")
    assert load(entrypoint)() == 1
    write("flaky.py", "def fn( return 1")
    assert "syntax error at flaky.py:1" in reason(entrypoint, fresh=True)
    assert load(entrypoint)() == 1
    write("flaky.py", "def fn(): return 2")
    assert load(entrypoint, fresh=True)() == 2


def test_R010_fresh_works_inside_packages(write: Write) -> None:
    """The parent package sees the new module too."""
    write("bag/__init__.py", "")
    write("bag/inner_m.py", "def fn(): return 1")
    load("bag.inner_m:fn")
    fresh = load("bag.inner_m:fn", fresh=True)
    assert sys.modules["bag"].inner_m.fn is fresh


def test_an_edit_of_the_same_second_and_size_is_seen(write: Write) -> None:
    """A compiled file of the code before is not taken for that of the code now."""
    path = write("edited.py", "def f():\n    return 1\n")
    py_compile.compile(str(path))
    stamp = path.stat().st_mtime
    write("edited.py", "def f():\n    return 2\n")
    os.utime(path, (stamp, stamp))
    assert load("edited:f")() == 2
