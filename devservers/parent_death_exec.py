"""Replaces this process by a program that dies with the process that started it.

Run by path, without a package:
    python -I -S parent_death_exec.py PARENT_PID SIGNAL UID GID PROGRAM ARGUMENT...

The child sets the death signal itself, so no `preexec_fn` is needed, which is unsafe with threads.
The order matters: a change of credentials clears the death signal, so it is set after the change
(prctl(2), PR_SET_PDEATHSIG). UID and GID -1 keep the user.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Drop privileges, set the death signal, replace this process."""
    parent, death_signal, uid, gid = (int(text) for text in sys.argv[1:5])
    program = sys.argv[5:]
    libc = ctypes.CDLL(None, use_errno=True)
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    libc.prctl(PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
