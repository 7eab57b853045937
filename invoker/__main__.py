"""What ``python -m invoker`` runs: the command line of `invoker.cli`."""

import sys

from invoker.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
