"""The entry point for spark-submit, which needs a file name that ends in .py."""

import sys

from spark.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
