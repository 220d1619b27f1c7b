"""Programs for the test of the zygote."""

from __future__ import annotations

import os
import random
import signal
import sys

from outbox.settings.environment import process_environment


def sleep() -> int:
    """Wait for a signal."""
    signal.pause()
    return 0


def die() -> int:
    """Kill this process, as a failpoint does."""
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def print_environment() -> int:
    """Print the given environment."""
    leads = os.getsid(0) == os.getpid()
    sys.stdout.write(f"LIFE={process_environment()['LIFE']} session={leads}\n")
    return 0


def draw() -> int:
    """Print a random number."""
    sys.stdout.write(f"{random.random()}\n")
    return 0
