"""`python -m benchmarks` is the comparison of `make bench`."""

from __future__ import annotations

from benchmarks.comparison.command import main

if __name__ == "__main__":
    raise SystemExit(main())
