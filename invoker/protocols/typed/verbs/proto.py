"""``python -m invoker proto mymod:fn``: prints a .proto file of the signatures, for generated clients.

The server serves the same methods, see docs/reference/typed.md. With ``--out`` the file is written below directories
named like the parts of its package, where buf and protoc expect it.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

from invoker.errors import StartupError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("entrypoint", help="module:function, file.py:function, file.pkl or a module")
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        help="write each file below this folder, in a subfolder for its package, and print the path",
    )
    parser.add_argument(
        "--allow-pickle", action="store_true", help="load a .pkl, which runs any code it holds with all your rights"
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of what failed")


def run(args: argparse.Namespace) -> int:
    """Print the file of the functions' module, or of each module.

    Returns:
        The exit code: 0, that of the error, or 1 if a file cannot be written.
    """
    from invoker.author.prepare import prepare
    from invoker.protocols.typed.schema import schemas_of
    from invoker.protocols.typed.text import proto_text

    try:
        schemas = schemas_of(one.spec for one in prepare(args.entrypoint, allow_pickle=args.allow_pickle))
    except StartupError as error:
        if args.debug:
            traceback.print_exception(error)
        print(f"invoker: {error.detail}", file=sys.stderr)
        return error.exit_code
    for schema in schemas:
        text = proto_text(schema)
        if not args.out:
            print(text, end="")
            continue
        path = Path(args.out) / schema.file
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            print(f"invoker: {path} cannot be written: {error.strerror}", file=sys.stderr)
            return 1
        print(path)
    return 0
