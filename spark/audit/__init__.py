"""One audit of both stores, its repetition in a loop, and the rerun of an earlier one."""
