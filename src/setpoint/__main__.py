"""The command line as ``python -m setpoint``, where scripts are not on the path."""

import sys

from setpoint.cli import main

if __name__ == "__main__":
    sys.exit(main())
