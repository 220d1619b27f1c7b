"""Prints the demo: headings, facts and progress."""

from collections.abc import Callable
from time import monotonic

EVERY_SECONDS = 2.0


class Narrator:
    """Prints to standard output, with the time since the beginning."""

    def __init__(self) -> None:
        self._started = monotonic()
        self._acts = 0

    def act(self, title: str, text: str) -> None:
        """Print the heading of the next act."""
        self._acts += 1
        seconds = monotonic() - self._started
        print(f"\nAct {self._acts}. {title}  {seconds:.0f} s\n  {text}", flush=True)

    def show(self, fact: str) -> None:
        """Print one fact."""
        print(f"  {fact}", flush=True)

    def progress(self, label: str, total: int) -> Callable[[int], None]:
        """Return a function that shows the number of finished items now and then."""
        printed_at = monotonic()

        def show(done: int) -> None:
            nonlocal printed_at
            if monotonic() - printed_at > EVERY_SECONDS:
                printed_at = monotonic()
                self.show(f"{label} {done}/{total}")

        return show
