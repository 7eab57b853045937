"""Generators and validators of OpenAPI that others have made: they take our document, and their clients our server."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.interop.tools import MODULES, run
from tests.serving import ROOT, serving

pytestmark = pytest.mark.timeout(120)

BIN = ROOT / ".interop/openapi/bin"
PROGRAMS = Path(__file__).parent / "openapi"
FUNCTIONS = "tests.e2e.described_functions"
GUIDE = ROOT / "docs/how-to/generate-a-client.md"
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Of a server with functions of every shape."""
    with serving(FUNCTIONS) as served:
        yield f"http://{served.http}"


@pytest.fixture(scope="module")
def document(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The document that this server gives."""
    path = tmp_path_factory.mktemp("openapi") / "openapi.json"
    with urlopen(f"{url}/openapi.json") as response:
        path.write_bytes(response.read())
    return path


def test_H067_a_validator_takes_the_document(document: Path) -> None:
    """`openapi-spec-validator` checks it against the schema of OpenAPI 3.1, with its defaults and references."""
    done = run(BIN / "openapi-spec-validator", "--schema", "3.1", document, limit_s=LIMIT_S)
    assert done.returncode == 0, done.stdout + done.stderr


def guided(tool: str, document: Path, made: Path) -> list[str | Path]:
    """The words of the command that the guide gives for a generator, behind its name, for our files."""
    line = re.search(rf"^(?:npx )?{tool} (.*)$", GUIDE.read_text(), re.MULTILINE)
    assert line, f"{GUIDE} has no command with {tool}"
    files = {"openapi.json": document, "square_client": made, "square.d.ts": made}
    return [files.get(word, word) for word in line[1].split()]


def test_H068_a_client_in_python(url: str, document: Path, tmp_path: Path) -> None:
    """`openapi-python-client` makes every operation, as the guide says, and its client calls them with typed values."""
    tool = "openapi-python-client"
    made = run(BIN / tool, *guided(tool, document, tmp_path / "made"), limit_s=LIMIT_S)
    assert made.returncode == 0, made.stdout + made.stderr
    operations = {one.stem for one in (tmp_path / "made/api").glob("*/*.py")} - {"__init__"}
    paths: dict[str, dict[str, Any]] = json.loads(document.read_text())["paths"]
    # It knows no body that is a picture only, and leaves such an operation out.
    assert operations == {one["operationId"] for path in paths.values() for one in path.values()} - {"paint"}
    done = run(BIN / "python", PROGRAMS / "client.py", url, tmp_path, limit_s=LIMIT_S)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    status, text = told.pop("refused")
    assert (status, "must be -1000 to 1000" in text) == (400, True)
    assert told == {
        "value": 49,
        "object": 9,
        "get": 25,
        "dataclass": {"x": 3, "y": 2.5},
        "named dataclass": {"x": 2, "y": 0.0},
        "recursive": {"name": "b", "children": []},
        "enum": "<a",
        "several": "a a",
        "bytes": "00ff",
        "file": {"a": 2, "points": 0},
        "rows": 10.0,
        "tuples": [["a", 1], ["b", 2]],
        "lists and dates": "3 2026-01-02 1 None",
        "any name": {"a": 1.0, "b": 2.5},
        "status": "made 1",
        "nothing taken": "00000000-0000-0000-0000-000000000007",
        "live": "ok\n",
    }


def test_H068_a_client_in_typescript(url: str, document: Path, tmp_path: Path) -> None:
    """`openapi-typescript`, as the guide says: its types compile, and refuse what the functions would refuse."""
    tool = "openapi-typescript"
    made = run(MODULES / ".bin" / tool, *guided(tool, document, tmp_path / "made.d.ts"), limit_s=LIMIT_S)
    assert made.returncode == 0, made.stdout + made.stderr
    shutil.copy(PROGRAMS / "client.ts", tmp_path / "client.ts")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").symlink_to(MODULES)
    options = ("--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "--skipLibCheck")
    compiled = run(
        *(MODULES / ".bin/tsc", *options, "--typeRoots", tmp_path / "none", "--outDir", tmp_path / "out"),
        tmp_path / "client.ts",
        limit_s=LIMIT_S,
    )
    assert compiled.returncode == 0, compiled.stdout
    (tmp_path / "out/package.json").write_text('{"type": "module"}')
    done = run("node", tmp_path / "out/client.js", url, limit_s=LIMIT_S)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert "must be -1000 to 1000" in told.pop("refused")["error"]
    assert sorted(map(str, told.pop("stream"))) == ["{'even': 2}", "{'odd': 1}", "{'odd': 3}"]
    assert told == {
        "value": 49,
        "object": 9,
        "get": 25,
        "dataclass": {"x": 3, "y": 2.5},
        "member": 2,
        "recursive": "b",
        "enum": "<a",
        "rows": 10.0,
        "tuples": [["a", 1], ["b", 2]],
    }
