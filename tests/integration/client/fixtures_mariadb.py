"""A MariaDB server of the test's own, where the package is installed."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fixtures_waiting import wait_for

SERVER = "mariadbd"
SEARCHED = os.defpath + ":/usr/sbin"


def mariadb_program() -> str | None:
    """Return the server's program, or None where it is not installed."""
    return shutil.which(SERVER, path=SEARCHED)


@contextmanager
def mariadb(program: str, folder: Path) -> Iterator[Path]:
    """Run a server without a network, users and rights until the block ends; yield its socket."""
    socket, log = folder / "s", folder / "log"
    (folder / "data" / "mysql").mkdir(parents=True)
    user = pwd.getpwuid(os.geteuid()).pw_name
    place = [f"--datadir={folder / 'data'}", f"--socket={socket}", f"--user={user}"]
    command = [program, "--no-defaults", *place, "--skip-networking", "--skip-grant-tables"]
    with log.open("wb") as output:
        server = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        wait_for(lambda: socket.exists() or server.poll() is not None)
        assert server.poll() is None, log.read_text()
        yield socket
    finally:
        server.terminate()
        server.wait(timeout=60)
