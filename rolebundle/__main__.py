"""`python -m rolebundle` is the command line."""

from rolebundle.interfaces.cli.main import main

if __name__ == "__main__":
    main()
