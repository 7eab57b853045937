"""How the project is packed and pinned: pyproject.toml, the lock files, and whoever installs them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import invoker

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = sorted(path for folder in ("requirements", "tests/interop") for path in (ROOT / folder).rglob("*.lock"))
SUITE = tomllib.loads((ROOT / "conformance/pyproject.toml").read_text())["project"]
RECIPES = ("Makefile", ".ci/run", "deploy/Containerfile")
PIN = re.compile(r"^([\w.-]+)==(\S+)(?: ;[^\\]*)? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")


def pins(path: Path) -> dict[str, str]:
    """The version of each pinned package; every line of the file is understood.

    Raises:
        AssertionError: A line is neither a pin nor its hash, or a pin has no hash.
    """
    found: dict[str, str] = {}
    hashed: set[str] = set()
    name = ""
    for line in path.read_text().splitlines():
        if match := PIN.match(line):
            name = canonicalize_name(match[1])
            found[name] = match[2]
        elif HASH.match(line):
            hashed.add(name)
        else:
            assert line.startswith("#"), f"{path}: {line}"
    assert hashed == set(found), f"{path} has pins without a hash"
    return found


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_pin_has_a_hash_and_no_file_names_a_host(path: Path) -> None:
    """A lock file holds pins, their hashes and comments, nothing else."""
    assert pins(path)
    assert "://" not in path.read_text()


@pytest.mark.parametrize(("file", "extras"), [("base", ()), ("dev", ("test", "dev")), ("protobuf6", ("test",))])
def test_what_the_project_asks_for_is_pinned(file: str, extras: tuple[str, ...]) -> None:
    """Each dependency, and those of the extras that the file is for, with a version that pyproject.toml allows."""
    pinned = pins(ROOT / "requirements" / f"{file}.lock")
    lines = [*PROJECT["dependencies"], "setuptools>=77"]
    lines += [one for extra in extras for one in PROJECT["optional-dependencies"][extra]]
    for wanted in map(Requirement, lines):
        if canonicalize_name(wanted.name) != PROJECT["name"]:
            assert wanted.specifier.contains(pinned[canonicalize_name(wanted.name)]), str(wanted)


def test_developers_test_what_is_served() -> None:
    """dev.lock has every pin of base.lock, with the same version."""
    base, dev = (pins(ROOT / "requirements" / f"{file}.lock") for file in ("base", "dev"))
    assert base.items() <= dev.items()


def test_a_lock_file_is_installed_with_its_hashes() -> None:
    """No recipe installs a requirements file without --require-hashes."""
    for file in filter(Path.exists, (ROOT / name for name in RECIPES)):
        lines = [
            line for line in file.read_text().replace("\\\n", " ").splitlines() if re.search(r"(?i)pip.* -r\b", line)
        ]
        assert all("--require-hashes" in line for line in lines), f"{file}: {lines}"


def test_the_distribution_has_a_name_of_its_own() -> None:
    """The index has another project named `invoker`; what is imported and typed keeps that name."""
    assert PROJECT["name"] == "stream-invoker"
    assert PROJECT["scripts"] == {"invoker": "invoker.cli.main:main"}
    assert invoker.__name__ == "invoker"


def test_nobody_is_sent_to_the_other_project() -> None:
    """No text of ours says `pip install invoker`, with or without extras."""
    files = [
        *ROOT.glob("*.md"),
        *(
            path
            for folder in ("docs", "invoker", "conformance", "functions", "deploy")
            for path in (ROOT / folder).rglob("*")
        ),
    ]
    texts = {path: path.read_text() for path in files if path.suffix in {".md", ".py", ".yaml", ""} and path.is_file()}
    assert [str(path) for path, text in texts.items() if re.search(r"pip install [\"']?invoker\b", text)] == []


def test_H072_the_files_of_the_page_are_packed() -> None:
    """The wheel takes each of them as data of its package."""
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    folder = ROOT / "invoker/protocols/web/service/page"
    packed = {path for pattern in patterns["invoker.protocols.web.service.page"] for path in folder.glob(pattern)}
    assert packed == {path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert len(packed) > 5


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of the suite's source distribution by their names, as setuptools packs it beside invoker."""
    tree, into = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    shutil.copytree(
        ROOT / "conformance", tree / "conformance", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__")
    )
    (tree / "invoker").mkdir()
    shutil.copy(ROOT / "invoker/version.py", tree / "invoker")
    build_in(tree / "conformance", "sdist", into)
    (archive,) = into.glob("stream_invoker_conformance-*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(tree / "unpacked", filter="data")
    (top,) = (tree / "unpacked").iterdir()
    build_in(top, "wheel", into)
    (wheel,) = into.glob("*.whl")
    with zipfile.ZipFile(wheel) as one:
        return {name: one.read(name).decode() for name in one.namelist()}


def build_in(folder: Path, kind: str, into: Path) -> None:
    """Build a distribution as pip would, with the setuptools that is here."""
    code = f"from setuptools import build_meta as b; b.build_{kind}({str(into)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, timeout=60)


def test_the_suite_is_built_from_its_source_distribution(packed: dict[str, str]) -> None:
    """With the version of invoker, which it asks for, its command, its licence and all its files."""
    (metadata,) = (text for name, text in packed.items() if name.endswith(".dist-info/METADATA"))
    said = HeaderParser().parsestr(metadata)
    assert said["Name"] == SUITE["name"]
    assert said["Version"] == invoker.__version__
    assert said.get_all("Requires-Dist") == [f"stream-invoker[federated]=={invoker.__version__}"]
    (scripts,) = (text for name, text in packed.items() if name.endswith("/entry_points.txt"))
    assert scripts.split() == ["[console_scripts]", "invoker-conformance", "=", "invoker_conformance.cli:main"]
    folder = ROOT / "conformance"
    files = {
        path.relative_to(folder).as_posix()
        for path in (folder / "invoker_conformance").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {name for name in packed if ".dist-info/" not in name} == files
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert any(name.endswith("/LICENSE") for name in packed)
