"""Copies a PostgreSQL cluster of a running server with its backup functions.

Only the server program is needed: not every set of binaries has the other ones.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Final

import psycopg

from chaos.servers.nodes import PostgresNode

OF_THE_RUNNING_SERVER: Final = frozenset(
    {"postmaster.pid", "postmaster.opts", "pgsql_tmp", "pg_internal.init"}
)
LOG: Final = "pg_wal"
BACKUP_STOP: Final = "SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)"


def copy_running(source: PostgresNode, target: PostgresNode) -> None:
    """Take a base backup of a running server; the WAL is copied last, so the copy is complete."""
    _copy_password(source, target)
    with psycopg.connect(source.dsn(), autocommit=True) as session:
        session.execute("SELECT pg_backup_start('chaos', fast => true)")
        _copy_tree(source.data_dir, target.data_dir, OF_THE_RUNNING_SERVER | {LOG})
        row = session.execute(BACKUP_STOP).fetchone()
    assert row is not None
    _copy_tree(source.data_dir / LOG, target.data_dir / LOG, frozenset())
    add_file(target.data_dir / "backup_label", str(row[0]))


def add_file(path: Path, text: str) -> None:
    """Append to a file of a cluster; the file gets the cluster's owner."""
    with path.open("a") as file:
        file.write(text)
    _give(path, path.parent.stat())


def exchange(one: PostgresNode, other: PostgresNode) -> None:
    """Exchange the clusters of two stopped servers."""
    aside = one.data_dir.with_name("data.aside")
    one.data_dir.rename(aside)
    other.data_dir.rename(one.data_dir)
    aside.rename(other.data_dir)


def _copy_password(source: PostgresNode, target: PostgresNode) -> None:
    home = target.server.home
    home.mkdir(mode=0o711, parents=True, exist_ok=True)
    shutil.rmtree(target.data_dir, ignore_errors=True)
    shutil.copy2(source.server.home / "password", home / "password")


def _copy_tree(source: Path, target: Path, without: Iterable[str]) -> None:
    """Copy a folder with its owners; the WAL restores files that vanish during the copy."""
    left_out = frozenset(without)
    target.mkdir(exist_ok=True)
    for folder, names, files in os.walk(source):
        names[:] = [name for name in names if name not in left_out]
        here = target / Path(folder).relative_to(source)
        _give(here, Path(folder).stat())
        for name in chain(names, files):
            if name not in left_out:
                with suppress(FileNotFoundError):
                    _copy_one(Path(folder, name), here / name)


def _copy_one(source: Path, target: Path) -> None:
    facts = source.stat()
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        shutil.copyfile(source, target)
    _give(target, facts)


def _give(path: Path, facts: os.stat_result) -> None:
    path.chmod(facts.st_mode & 0o7777 if path.is_dir() else facts.st_mode & 0o600)
    if os.geteuid() == 0:
        os.chown(path, facts.st_uid, facts.st_gid)
