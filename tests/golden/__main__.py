"""Records the traces anew: ``python -m tests.golden --write [PROTOCOL ...]``; without ``--write`` it compares them."""

from __future__ import annotations

import argparse
import logging
import sys

from tests.golden.traces import PROTOCOLS, difference, file_of, record


def main() -> int:
    """Write or compare; 1 means that something differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files, instead of comparing with them")
    parser.add_argument("protocols", nargs="*", metavar="PROTOCOL", help=f"of {', '.join(PROTOCOLS)}; default: all")
    given = parser.parse_args()
    logging.disable()
    found = ""
    for protocol in given.protocols or PROTOCOLS:
        played, path = record(protocol), file_of(protocol)
        if given.write:
            path.write_text(played, encoding="utf-8")
        elif differs := difference(path.read_text(encoding="utf-8"), played):
            found += f"{protocol}:\n{differs}\n"
    print(found, end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
