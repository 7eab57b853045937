"""The command line that ``python -m invoker`` runs (`invoker.cli`)."""

import sys

from invoker.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
