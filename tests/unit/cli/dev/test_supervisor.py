"""Who is started again, and when."""

from cli.dev.supervisor import LONGEST_PAUSE_SECONDS, STEADY_SECONDS, Pause, Supervisor, ending
from devservers.errors import ServerFailed


class FakeService:
    """A service that dies when told to."""

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


def supervisor(service: FakeService, told: list[str]) -> Supervisor:
    return Supervisor(
        {"api": service}, changed=lambda: told.append("changed"), say=lambda line: told.append(line)
    )


def test_what_runs_is_left_alone() -> None:
    service, told = FakeService(), list[str]()
    assert supervisor(service, told).watch_once() == 0
    assert (service.pid, told) == (100, [])


def test_what_died_is_started_again_and_told() -> None:
    service, told = FakeService(), list[str]()
    service.died = -9
    assert supervisor(service, told).watch_once() == 1
    assert service.pid == 101
    assert told == ["api ended (killed by signal 9); starting it again", "changed"]


def test_a_start_that_fails_is_told_and_tried_again_later() -> None:
    service, told = FakeService(fails=True), list[str]()
    service.died = 1
    watched = supervisor(service, told)
    watched.watch_once()
    assert "api: no room" in told
    assert watched.watch_once() == 0, "its pause is not over"


def test_the_pause_grows_up_to_a_bound_and_is_forgotten_after_a_steady_run() -> None:
    pause, now = Pause(), 100.0
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


def test_an_exit_code_is_said_in_words() -> None:
    assert ending(3) == "exit code 3"
    assert ending(-15) == "killed by signal 15"
