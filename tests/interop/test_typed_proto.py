"""buf compiles and lints what `invoker proto` prints; it sees the same descriptors as reflection tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from invoker.author.prepare import prepare
from invoker.cli.main import main
from invoker.protocols.typed.descriptors import files_of
from invoker.protocols.typed.schema import schemas_of
from tests.interop.tools import BUF, run

pytestmark = pytest.mark.timeout(30)

KITCHEN = "tests.protocols.typed.kitchen"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module of buf with the file of every sample, and of the kitchen."""
    for entrypoint in (KITCHEN, "functions.conformance", "functions.tools", "functions.iris", "functions.generate"):
        assert main(["proto", entrypoint, "--out", str(tmp_path)]) == 0
    config = {"version": "v2", "lint": {"use": ["MINIMAL"]}}
    (tmp_path / "buf.yaml").write_text(json.dumps(config))
    return tmp_path


def test_H104_buf_takes_the_files(module: Path) -> None:
    """They compile, and nothing of MINIMAL is wrong."""
    for command in ("build", "lint"):
        done = run(BUF, command, module)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_H104_text_and_descriptors_are_the_same(module: Path, tmp_path: Path) -> None:
    """What a compiler makes of the text is what the server tells by reflection."""
    image = tmp_path / "image.binpb"
    done = run(BUF, "build", module, "--exclude-source-info", "--as-file-descriptor-set", "-o", image)
    assert done.returncode == 0, done.stderr
    compiled = {one.name: one for one in descriptor_pb2.FileDescriptorSet.FromString(image.read_bytes()).file}
    own = files_of(schemas_of(one.spec for one in prepare(KITCHEN)))[-1]
    told = descriptor_pb2.FileDescriptorProto.FromString(own)
    assert compiled[told.name] == told


def test_H104_names_of_protobuf_may_be_names_of_parameters(tmp_path: Path) -> None:
    """Words of its grammar, too."""
    words = (
        "message", "enum", "oneof", "optional", "repeated", "map", "string", "int64", "reserved", "option", "service",
        "rpc", "returns", "stream", "syntax", "package", "extensions", "to", "max", "group", "google", "true", "inf",
    )  # fmt: skip
    code = f"def f({', '.join(f'{word}: str' for word in words)}, input: list[int] = []) -> int: ...\n"
    (tmp_path / "words.py").write_text(code)
    assert main(["proto", f"{tmp_path}/words.py:f", "--out", str(tmp_path)]) == 0
    done = run(BUF, "build", tmp_path)
    assert done.returncode == 0, done.stderr
