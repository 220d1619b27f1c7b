"""A checkout of the previous release, beside this tree, with what `make setup` has fetched."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from devservers.artifacts import PROJECT_ROOT, RUNTIME

PREVIOUS: Final = "41055351288f"
"""The commit that counts as the previous release until one is tagged."""


def previous_release() -> str | None:
    """Return the newest tag before this commit, or ``PREVIOUS``; None if the clone has neither."""
    tag = _git("describe", "--tags", "--abbrev=0", "HEAD~1")
    for name in (tag, PREVIOUS):
        if name and _git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"):
            return name
    return None


@contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Check a commit out into a work tree of its own for the block; raises SystemExit."""
    with tempfile.TemporaryDirectory(prefix="outbox-release-") as folder:
        tree = Path(folder) / "tree"
        added = ("worktree", "add", "--force", "--detach", str(tree), commit)
        if _git(*added) is None:
            raise SystemExit(f"git has no commit {commit}: fetch the history of this clone")
        (tree / RUNTIME.name).symlink_to(RUNTIME)
        try:
            yield tree
        finally:
            _git("worktree", "remove", "--force", str(tree))


def commit_of(name: str) -> str:
    """Return the full name of a commit."""
    return _git("rev-parse", f"{name}^{{commit}}") or name


def _git(*arguments: str) -> str | None:
    """Return what git says; None if it fails."""
    command = ["git", "-C", str(PROJECT_ROOT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None
