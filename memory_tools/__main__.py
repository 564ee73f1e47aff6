"""`python -m memory_tools ARGUMENTS` does what the command `memory-tools ARGUMENTS` does."""

from __future__ import annotations

from memory_tools.cli import main

if __name__ == "__main__":
    main()
