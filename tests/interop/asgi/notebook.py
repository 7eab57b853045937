"""Runs a notebook in a real Jupyter kernel, and prints what its cells have printed, as a JSON list."""

from __future__ import annotations

import json
import sys

import nbformat
from nbclient import NotebookClient

CELLS = """
import threading, urllib.request
import invoker

def ask(served, value):
    request = urllib.request.Request(served.http_url, value, {"Content-Type": "application/json"})
    return urllib.request.urlopen(request).read().decode()
# %%
def square(x: int) -> int:
    return x * x

served = first = invoker.serve(square)
served
# %%
print(ask(served, b"7"))
# %%
def square(x: int) -> int:
    return x * x + 1

served = invoker.serve(square)
print(ask(served, b"7"), first.is_running, served.http_url == first.http_url)
# %%
async with invoker.serve(lambda x: x + 1, protocols="http") as other:
    print(other.functions, ask(other, b"7"))
# %%
print(served.stop(), [one.name for one in threading.enumerate() if one.name.startswith("invoker")])
# %%
class Model:
    def __enter__(self): pass
    def __call__(self, x: int) -> int: return x
    def __exit__(self, *exc): open(MARKS, "w").write("left")

print(ask(invoker.serve(Model), b"7"))
"""


def main() -> None:
    """Run it."""
    cells = f"MARKS = {sys.argv[1]!r}\n{CELLS}".split("# %%\n")
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
    NotebookClient(book, timeout=30, kernel_name="python3").execute()
    print(json.dumps([_printed(cell) for cell in book.cells]))


def _printed(cell: nbformat.NotebookNode) -> str:
    texts = [one.get("text") or one.get("data", {}).get("text/plain", "") for one in cell.outputs]
    return "".join(texts).strip()


if __name__ == "__main__":
    main()
