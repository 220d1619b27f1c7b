"""Lives of a program, each ended by SIGKILL at a random moment; then one that lives on.

``python -m tests.integration.client.inbox.fixtures_mortals`` imports the program once and forks
each life, so a death costs milliseconds. Its argument is JSON: ``program`` is a module with
``live``, and each of ``kills`` lives is killed within ``seconds`` after it has begun to work.
"""

import importlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import traceback
from functools import cache
from typing import Any

from tests.fixtures_paths import PROJECT


def mortals(**asked: Any) -> subprocess.Popen[str]:
    """Start the lives; it says ``immortal`` after the last kill, and ends when stdin closes."""
    command = [sys.executable, "-m", __name__, json.dumps(asked)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=PROJECT, stdin=pipe, stdout=pipe, text=True)


def born(asked: Any, program: Any) -> tuple[int, int]:
    """Fork a life; return its process id and a pipe that can be read once it works."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            program.live(asked, cache(lambda: os.write(writing, b".")), threading.Event())  # once
        finally:
            traceback.print_exc()
            os._exit(1)
    os.close(writing)
    return pid, reading


def main() -> None:
    """Kill lives, then let one live."""
    asked = json.loads(sys.argv[1])
    program = importlib.import_module(asked["program"])
    chance, pause, stdin = random.Random(asked["kills"]), threading.Event(), sys.stdin.fileno()
    for _ in range(asked["kills"]):
        pid, working = born(asked, program)
        select.select([working, stdin], [], [])
        pause.wait(chance.uniform(0, asked["seconds"]))
        os.kill(pid, signal.SIGKILL)
        assert os.waitpid(pid, 0)[1] == signal.SIGKILL, "it died of itself"
        os.close(working)
    sys.stdout.write("immortal\n")
    sys.stdout.flush()
    pid, _ = born(asked, program)
    sys.stdin.read()
    os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
