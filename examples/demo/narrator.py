"""Prints the demo: headings, facts, and progress (a bar on a terminal, else a few lines)."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

PLAIN_EVERY_SECONDS = 2.0


class ProgressDisplay(Protocol):
    """Takes the number of finished items, and a note."""

    def __call__(self, done: int, note: str) -> None:
        """Show it."""
        ...


class Narrator:
    """Prints to standard output; the form depends on the terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, soft_wrap=True)
        self._started = monotonic()
        self._acts = 0

    def act(self, title: str, text: str) -> None:
        """Print the heading of the next act."""
        self._acts += 1
        seconds = monotonic() - self._started
        self._console.print(f"\n[bold]Act {self._acts}. {title}[/bold]  [dim]{seconds:.0f} s[/dim]")
        self._console.print(f"  [dim]{text}[/dim]")

    def show(self, fact: str) -> None:
        """Print one fact."""
        self._console.print(f"  {fact}", markup=False)

    def verdict(self, line: str, *, good: bool) -> None:
        """Print the result."""
        seconds = monotonic() - self._started
        colour = "green" if good else "red"
        self._console.print(f"\n[bold {colour}]{line}[/]  [dim]{seconds:.0f} s[/dim]")

    @contextmanager
    def progress(self, label: str, total: int) -> Iterator[ProgressDisplay]:
        """Show progress towards ``total`` while the block runs."""
        shown = self._bar(label, total) if self._console.is_terminal else self._lines(label, total)
        with shown as gauge:
            yield gauge

    @contextmanager
    def _bar(self, label: str, total: int) -> Iterator[ProgressDisplay]:
        columns = (
            TextColumn("  {task.description}"),
            BarColumn(30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
        )
        with Progress(*columns, console=self._console) as bar:
            task = bar.add_task(label, total=total, note="")

            def show(done: int, note: str) -> None:
                bar.update(task, completed=done, note=note)

            yield show

    @contextmanager
    def _lines(self, label: str, total: int) -> Iterator[ProgressDisplay]:
        printed_at = monotonic()

        def show(done: int, note: str) -> None:
            nonlocal printed_at
            if monotonic() - printed_at > PLAIN_EVERY_SECONDS or done == total:
                printed_at = monotonic()
                self.show(f"{label} {done}/{total} {note}".rstrip())

        yield show
