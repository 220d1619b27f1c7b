"""A relay in a separate process that a test kills; run with ``python -m``.

Says ``running`` on stdout each time it has taken the shard over. It stops when stdin closes, so it
never outlives its test.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

from checker.relay_wiring import RelayBuilder
from outbox.failpoints import arm
from outbox.relay.protocol.state import Phase
from outbox.settings.environment import load_settings
from outbox.telemetry.events import configure_logging
from outbox.telemetry.metrics import Metrics


def main() -> None:
    """Relay the shard that the only argument describes, as JSON."""
    stop = threading.Event()
    threading.Thread(target=_watch_parent, args=(stop,), daemon=True).start()
    live(json.loads(sys.argv[1]), _say_running, stop)


def live(asked: Any, works: Callable[[], object], stop: threading.Event) -> None:
    """Relay the shard; call ``works`` each time it has been taken over."""
    configure_logging("error", "json")
    settings = load_settings(asked["environment"])
    arm(asked["environment"].get("OUTBOX_FAILPOINTS"))
    builder = RelayBuilder(
        settings, Metrics(), asked["progress_topic"], batch_max=asked["batch_max"]
    )
    relay, was = builder.open(asked["shard"]), Phase.IDLE
    while not stop.is_set():
        done = relay.run_once()
        if done.phase is Phase.RUN is not was:
            works()
        was = done.phase
        stop.wait(min(done.rest_seconds, 0.05))
    relay.close()


def _say_running() -> None:
    sys.stdout.write("running\n")
    sys.stdout.flush()


def _watch_parent(stop: threading.Event) -> None:
    sys.stdin.read()
    stop.set()


if __name__ == "__main__":
    main()
