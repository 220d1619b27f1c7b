"""Which services the supervisor restarts, and when."""

from cli.dev.supervisor import (
    LONGEST_PAUSE_SECONDS,
    STEADY_SECONDS,
    RestartPause,
    Supervisor,
)
from devservers.errors import ServerFailed


class FakeService:
    """A service that a test can end."""

    def __init__(self, *, fails: bool = False) -> None:
        self.pid: int | None = 100
        self.died: int | None = None
        self.fails = fails

    def launch(self) -> None:
        if self.fails:
            raise ServerFailed("no room")
        self.pid, self.died = (self.pid or 0) + 1, None

    def exit_code(self) -> int | None:
        return self.died

    def signal_stop(self) -> None:
        self.died = 0

    def stop(self) -> None:
        self.died = 0


def supervisor(service: FakeService, lines: list[str]) -> Supervisor:
    return Supervisor(
        {"api": service},
        changed=lambda: lines.append("changed"),
        say=lambda line: lines.append(line),
    )


def test_a_failed_start_is_reported_and_retried_later() -> None:
    service, lines = FakeService(fails=True), list[str]()
    service.died = 1
    watched = supervisor(service, lines)
    watched.watch_once()
    assert "api: no room" in lines
    assert watched.watch_once() == 0, "its pause is not over"


def test_the_pause_grows_to_a_limit_and_is_reset_after_a_steady_run() -> None:
    pause, now = RestartPause(), 100.0
    assert pause.over(now)
    starts = []
    for _ in range(10):
        pause.began(now)
        waited = next(step / 10 for step in range(100) if pause.over(now + step / 10))
        starts.append(waited)
        now += waited
    assert starts[0] <= 0.2
    assert starts == sorted(starts)
    assert starts[-1] == LONGEST_PAUSE_SECONDS
    pause.began(now + LONGEST_PAUSE_SECONDS + STEADY_SECONDS)
    assert pause.over(now + LONGEST_PAUSE_SECONDS + STEADY_SECONDS + 0.3)
