"""Tests of what the arguments of ``call`` mean."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from invoker.connect.failure import UsageError
from invoker.connect.sources import Part
from invoker.protocols.riff.verbs.call import add_arguments
from invoker.protocols.riff.verbs.plan import Plan, make_plan

STDIN = (Part(path="-"),)


def plan(*arguments: str, target: str = "127.0.0.1:8081") -> Plan:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return make_plan(parser.parse_args([target, *arguments]))


@pytest.mark.parametrize(
    ("arguments", "inputs"),
    [
        ("", (STDIN,)),
        ("--data a --data b", ((Part(b"a"), Part(b"b")),)),
        ("--data @@a", ((Part(b"@a"),),)),
        ("--data @-", (STDIN,)),
        ("--no-input", ()),
        ("--arg 1=x", (STDIN, (Part(b"x"),))),
        ("--arg 1=@-", ((), STDIN)),
        ("--arg 2=a=b --data x", ((Part(b"x"),), (), (Part(b"a=b"),))),
        ("--data x --arg 0=y", ((Part(b"x"), Part(b"y")),)),
        ("--inputs a,b --arg b=1 --arg a=2", ((Part(b"2"),), (Part(b"1"),))),
    ],
)
def test_where_the_inputs_come_from(arguments: str, inputs: tuple[tuple[Part, ...], ...]) -> None:
    """Stdin feeds input 0, unless it is fed otherwise."""
    made = plan(*arguments.split())
    assert made.inputs == inputs
    assert made.reads_stdin == any(STDIN[0] in parts for parts in inputs)


def test_files_are_looked_for_before_the_call(tmp_path: Path) -> None:
    """A value that begins with @ is written @@."""
    path = tmp_path / "a=b"
    path.touch()
    assert plan("--arg", f"1=@{path}").inputs[1] == (Part(path=str(path)),)
    with pytest.raises(UsageError, match="cannot read nothing; a value that begins with @ is written @@"):
        plan("--data", "@nothing")
    with pytest.raises(UsageError, match="is a directory"):
        plan("--data", f"@{tmp_path}")


@pytest.mark.parametrize(
    ("arguments", "types", "raw"),
    [
        ("", ["text/plain", "text/plain"], [False, False]),
        ("--json", ["application/json", "application/json"], [False, False]),
        ("--content-type image/png", ["image/png", "image/png"], [True, True]),
        ("--content-type 1=image/png --content-type text/csv", ["text/csv", "image/png"], [False, True]),
        ("--json --content-type b=text/csv;a=b", ["application/json", "text/csv;a=b"], [False, False]),
        ("--content-type text/plain;charset=utf-8", ["text/plain;charset=utf-8"] * 2, [False, False]),
        ("--raw", ["text/plain", "text/plain"], [True, True]),
        ("--chunk 5", ["text/plain", "text/plain"], [True, True]),
    ],
)  # fmt: skip
def test_types_of_the_inputs(arguments: str, types: list[str], raw: list[bool]) -> None:
    """For all or for one; a type that is not text is not read by lines."""
    made = plan("--inputs", "a,b", "--data", "x", "--arg", "1=y", *arguments.split())
    assert [made.request.content_type_of(index) for index in (0, 1)] == types
    assert [framing.is_raw for framing in made.framings] == raw


@pytest.mark.parametrize(
    ("arguments", "accepts", "names"),
    [
        ([], ("*/*",), ()),
        (["--json"], ("application/json",), ()),
        (["--accept", "text/plain", "--accept", "a/b,c/d"], ("text/plain", "a/b,c/d"), ()),
        (["--outputs", "a,b"], ("*/*", "*/*"), ("a", "b")),
        (["--outputs", "a,b", "--accept", "a/b"], ("a/b", "a/b"), ("a", "b")),
        (["--outputs", "a,b", "--accept", "a/b", "--accept", "c/d"], ("a/b", "c/d"), ("a", "b")),
        (["--outputs", ""], (), ()),
        (["--json", "--outputs", ""], (), ()),
    ],
)
def test_outputs_are_counted(arguments: list[str], accepts: tuple[str, ...], names: tuple[str, ...]) -> None:
    """By --accept or by --outputs."""
    request = plan(*arguments).request
    assert (request.accepts(), tuple(request.output_names or ())) == (accepts, names)


def test_files_of_outputs(tmp_path: Path) -> None:
    """By index, by name, and for the rest; a '=' in a path is no name."""
    made = plan(
        "--outputs", "a,b", "--output", f"b={tmp_path}/b", "--output", "0=-", "--output", f"{tmp_path}/x=y"
    )  # fmt: skip
    assert (made.files, made.rest) == ({1: f"{tmp_path}/b", 0: "-"}, f"{tmp_path}/x=y")


def test_headers_metadata_function_and_time() -> None:
    """As they are sent."""
    arguments = "--header A=1=2 --header B= --metadata X-Id=7 --function f --timeout 1.5"
    request = plan(*arguments.split()).request
    assert (dict(request.headers), request.timeout_s) == ({"A": "1=2", "B": ""}, 1.5)
    assert dict(request.metadata_pairs({})) == {"x-id": "7", "invoker-function": "f"}


def test_tls_is_implied_by_its_options(tmp_path: Path) -> None:
    """And files are looked for before the call."""
    assert plan().tls is None
    assert plan("--tls").tls is not None
    made = plan("--server-name", "a.example").tls
    assert made is not None
    assert made.server_name == "a.example"
    with pytest.raises(UsageError, match="--ca: cannot read nothing"):
        plan("--ca", "nothing")
    cert = tmp_path / "cert"
    cert.touch()
    with pytest.raises(UsageError, match="both cert and key"):
        plan("--cert", str(cert))


def test_port_alone_means_this_machine() -> None:
    """For those who type a lot."""
    assert plan(target=":8081").target == "127.0.0.1:8081"
    assert plan(target="[::1]:8081").target == "[::1]:8081"
    assert plan(target="unix:/run/x").target == "unix:/run/x"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--arg", "x"], "give INDEX=VALUE"),
        (["--arg", "x=1"], "expected a number from 0, or a name that --inputs lists"),
        (["--inputs", "a,b", "--arg", "c=1"], "expected one of a, b"),
        (["--inputs", "a", "--arg", "1=x"], "--inputs names only 1"),
        (["--arg", "2147483647=x"], "expected a number"),
        (["--data", "@"], "names no file"),
        (["--data", "@-", "--arg", "1=@-"], "stdin can feed one input only"),
        (["--no-input", "--data", "x"], "contradicts"),
        (["--outputs", "", "--accept", "a/b"], "says that there is no output"),
        (["--outputs", "a,b,c", "--accept", "a/b", "--accept", "a/b"], "--accept is given 2 times for 3 outputs"),
        (["--output", "a", "--output", "b"], "another FILE is given already"),
        (["--output", "0="], "names no file"),
        (["--output", "/nowhere/at/all"], "does not exist"),
        (["--header", "a"], "give NAME=VALUE"),
        (["--metadata", "a=ü"], "printable ASCII"),
        (["--content-type", "3=a/b"], "--content-type"),
    ],
)
def test_mistakes_are_told_with_the_fix(arguments: list[str], text: str) -> None:
    """Before anything is sent."""
    if arguments[0] == "--content-type":
        arguments = ["--inputs", "a", *arguments]
    with pytest.raises(UsageError, match=text):
        plan(*arguments)


@pytest.mark.parametrize("target", ["localhost", "http://localhost:8081", ""])
def test_target_needs_host_and_port(target: str) -> None:
    """Not a URL."""
    with pytest.raises(UsageError, match="is not HOST:PORT"):
        plan(target=target)
