"""Create `outbox.progress` as soon as the broker answers, in a process of its own.

The supervisor starts others all its life, so no Kafka client may ever live in it.
"""

import sys

from outbox.errors import KafkaUnavailable
from outbox.kafka.progress_topic import ensure_progress_topic

WAIT_SECONDS = 60.0
IMPATIENT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 100}


def main() -> None:
    """Take the broker's address from the command line."""
    try:
        ensure_progress_topic(sys.argv[1], IMPATIENT, replication=1, timeout_seconds=WAIT_SECONDS)
    except KafkaUnavailable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
