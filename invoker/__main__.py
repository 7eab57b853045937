"""``python -m invoker``."""

import sys

from invoker.cli import main

if __name__ == "__main__":
    sys.exit(main())
