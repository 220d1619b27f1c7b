"""The crash harness: runs the whole service on real servers, breaks it, and judges what is left.

``run`` starts everything and follows a schedule of faults, ``workload`` calls the API and keeps the
truth of every transaction, ``judge`` reads only the files that a run leaves behind.
"""
