"""`python -m lcse_plugins` is the command `lcse`."""

from lcse_plugins.cli.main import main

if __name__ == "__main__":
    main()
