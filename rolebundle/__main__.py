"""The program: `rolebundle`, or `python -m rolebundle`."""

import atexit
import os
import sys


def main() -> None:
    """Run the command line. If it is interrupted while it is imported, it ends as it does later."""
    try:
        from rolebundle.interfaces.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; completed work is kept\n")
        sys.exit(130)
    try:
        run()
    except SystemExit as end:
        _leave(end.code)


def _leave(code: object) -> None:
    """End the process. The interpreter would first free everything that it has, piece by piece."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        pass
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
