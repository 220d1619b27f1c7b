"""Who acts, for actions that are audited."""

import getpass


def operator_name() -> str:
    """Return the operating system's user name, `unknown` for a user without one."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
