"""``python -m invoker proto``."""

from __future__ import annotations

from invoker.cli.main import main


def test_H104_it_prints_a_file(capsys):
    """Nothing but the file goes to stdout."""
    assert main(["proto", "functions.square:square"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("// functions/square/square.proto, ")
    assert "  rpc Square(SquareRequest) returns (SquareResponse);\n" in shown.out
    assert shown.err == ""


def test_H104_it_writes_the_file_where_its_package_wants_it(tmp_path, capsys):
    """It prints the path."""
    assert main(["proto", "functions.add:add", "--out", str(tmp_path)]) == 0
    path = tmp_path / "functions/add/add.proto"
    assert capsys.readouterr().out == f"{path}\n"
    assert "package functions.add;" in path.read_text(encoding="utf-8")


def test_H104_a_folder_that_is_none_is_an_error(tmp_path, capsys):
    """One sentence says which."""
    (tmp_path / "functions").write_text("")
    assert main(["proto", "functions.add:add", "--out", str(tmp_path)]) == 1
    assert "cannot be written: " in capsys.readouterr().err


def test_H104_an_entrypoint_that_is_none_is_an_error(capsys):
    """As serving would end."""
    assert main(["proto", "functions.add:ad"]) == 1
    assert "did you mean 'add'?" in capsys.readouterr().err
