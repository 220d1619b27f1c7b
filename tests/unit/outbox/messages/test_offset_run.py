"""The offset runs of a batch."""

from outbox.messages.offset_run import OffsetRun, runs_of


def test_neighbours_of_one_partition_are_one_run() -> None:
    assert runs_of(["a", "a", "a"], [0, 0, 0], [5, 6, 7]) == (OffsetRun("a", 0, 5, 3),)


def test_partitions_and_topics_that_alternate_have_a_run_each() -> None:
    runs = runs_of(["a", "b", "a", "a"], [0, 0, 1, 0], [5, 9, 2, 6])
    assert runs == (OffsetRun("a", 0, 5, 2), OffsetRun("b", 0, 9, 1), OffsetRun("a", 1, 2, 1))


def test_a_gap_begins_another_run() -> None:
    """Another producer may write between two requests of one batch."""
    runs = runs_of(["a", "a", "a"], [0, 0, 0], [5, 8, 9])
    assert runs == (OffsetRun("a", 0, 5, 1), OffsetRun("a", 0, 8, 2))


def test_an_unknown_offset_makes_the_runs_unknown() -> None:
    assert runs_of(["a", "a"], [0, 0], [5, -1]) is None


def test_no_record_has_no_run() -> None:
    assert runs_of([], [], []) == ()


def test_a_run_ends_after_its_last_record() -> None:
    assert OffsetRun("a", 0, 5, 3).end == 8
