"""What spark-submit runs: it takes a file that ends in .py, which the installed script does not."""

import sys

from spark.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
