"""The program `substrate-compat`: calls the command line, or says how to install it."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit with its status."""
    try:
        from substrate_compat.cli import run
    except ModuleNotFoundError as error:
        sys.exit(f"error: {error.name} is missing; install it with: pip install 'substrate-compat[cli]'")
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
