"""Become another program that dies with the process which started it.

Run by path, with no package around it:
    python -I -S bound_exec.py PARENT_PID SIGNAL UID GID PROGRAM ARGUMENT...

A child that sets this up for itself needs no `preexec_fn`, which is unsafe beside threads. The
order matters: the kernel forgets the death signal when the credentials change, so it is asked for
after them (prctl(2), PR_SET_PDEATHSIG). UID and GID -1 keep the user.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Drop privileges, ask for the death signal, replace this process."""
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
