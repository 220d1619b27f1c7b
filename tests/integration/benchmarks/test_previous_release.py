"""The previous release is checked out beside this tree, and nothing of it is left afterwards."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks.measure.previous_release import checkout, commit_of, previous_release
from devservers.artifacts import RUNTIME
from tests.fixtures_paths import PROJECT


def work_trees() -> str:
    """Return what git knows of work trees."""
    command = ["git", "-C", str(PROJECT), "worktree", "list"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_checkout_has_the_release_and_the_fetched_servers_and_goes_away() -> None:
    release = previous_release()
    if release is None:
        pytest.skip("the previous release is not in this clone: git fetch --unshallow --tags")
    with checkout(release) as tree:
        assert (tree / "outbox" / "__init__.py").exists()
        assert (tree / ".runtime").resolve() == RUNTIME
        assert str(tree) in work_trees()
    assert not tree.exists()
    assert str(tree) not in work_trees()


def test_an_unknown_commit_is_refused_in_words() -> None:
    with pytest.raises(SystemExit, match="no commit v0"), checkout("v0-not-there"):
        pass


def test_a_commit_has_its_full_name() -> None:
    assert len(commit_of("HEAD")) == 40
