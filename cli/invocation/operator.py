"""The name of the operator, for audited actions."""

import getpass


def operator_name() -> str:
    """Return the operating system's user name, or `unknown` without one."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
