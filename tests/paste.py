"""A Python session into which the blocks of a page are pasted, as a reader would into ``python -m asyncio``.

Each line of standard input is a JSON text: the code of a block. Each is answered by a line: what it printed, and its
traceback or nothing. Names live on from block to block; ``await`` may stand at the top level.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import sys
import traceback


def main() -> None:
    """Answer until standard input ends."""
    sys.path[0] = ""
    sys.ps1 = ">>> "  # as an interactive session has it
    names: dict[str, object] = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            printed, error = io.StringIO(), ""
            with contextlib.redirect_stdout(printed):
                try:
                    code = compile(
                        json.loads(line), "<page>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
                    )
                    found = eval(code, names)
                    if inspect.iscoroutine(found):
                        runner.run(found)
                except Exception:
                    error = traceback.format_exc()
            print(json.dumps([printed.getvalue(), error]), flush=True)


if __name__ == "__main__":
    main()
