"""Creates `outbox.progress` once the broker answers, in its own process.

The supervisor starts processes until its end, so it must never hold a Kafka client.
"""

import sys

from outbox.errors import KafkaUnavailable
from outbox.kafka.progress_topic import ensure_progress_topic

WAIT_SECONDS = 60.0
FAST_RECONNECT = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 100}


def main() -> None:
    """Create the topic on the broker in the first argument."""
    try:
        ensure_progress_topic(
            sys.argv[1], FAST_RECONNECT, replication=1, timeout_seconds=WAIT_SECONDS
        )
    except KafkaUnavailable as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
