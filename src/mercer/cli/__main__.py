"""``python -m mercer.cli`` is the `mercer` command."""

import sys

from .frame import main

if __name__ == "__main__":
    sys.exit(main())
