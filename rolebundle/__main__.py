"""The program: `rolebundle`, or `python -m rolebundle`."""

import sys

from rolebundle.interfaces import warm


def main() -> None:
    """Run the command line. If it is interrupted while it is imported, it ends as it does later."""
    try:
        code = warm.run(sys.argv[1:])
        if code is not None:
            sys.exit(code)
        from rolebundle.interfaces.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; completed work is kept\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
