"""A service that does not start again is tried again later."""

from cli.dev.supervisor import Supervisor
from devservers.errors import ServerFailed


class FailingService:
    """A service that has ended and cannot be started."""

    pid: int | None = None

    def launch(self) -> None:
        raise ServerFailed("no room")

    def exit_code(self) -> int | None:
        return 1

    def signal_stop(self) -> None:
        """Do nothing: it has ended."""

    def stop(self) -> None:
        """Do nothing: it has ended."""


def test_a_failed_start_is_reported_and_retried_later() -> None:
    lines = list[str]()
    watched = Supervisor({"api": FailingService()}, changed=lambda: None, say=lines.append)
    watched.watch_once()
    assert "api: no room" in lines
    assert watched.watch_once() == 0, "its pause is not over"
