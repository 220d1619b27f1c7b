"""The version of what is installed."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version


@cache
def installed_version() -> str:
    """Return the version of the `outbox` distribution; `0` when run from a bare checkout."""
    try:
        return version("outbox")
    except PackageNotFoundError:
        return "0"
