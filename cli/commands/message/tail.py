"""`outbox message tail`: the records of a topic, as a `read_committed` consumer sees them."""

import sys
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Annotated, Any, Final

import typer

from cli.invocation.context import Output, context_of
from cli.invocation.exit_codes import CommandFailed, ExitCode
from cli.invocation.output import print_object
from cli.invocation.settings import settings_or_dev
from outbox.operators.message_view import header_values, text_or_base64

EARLIER: Final = 20
"""Offsets of each partition that are read from before its end; the marker of a commit has one."""
NO_END: Final = 2**63 - 1


def tail(
    context: typer.Context,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="A topic in Kafka.")],
    *,
    limit: Annotated[
        int | None,
        typer.Option(metavar="COUNT", min=1, help="End after this many.", show_default="Ctrl-C"),
    ] = None,
) -> None:
    """Print the last records of a topic, then each that comes, as consumers see them.

    For programs each record is one line of JSON.
    """
    invocation = context_of(context)
    if invocation.output is Output.JSON:
        invocation = replace(invocation, output=Output.JSONL)
    with closing(_records(topic)) as records:
        for record in islice(records, limit):
            print_object(invocation, record)
            if invocation.output is Output.TABLE:
                print()
            sys.stdout.flush()


def _records(topic: str) -> Generator[dict[str, Any], None, None]:
    """Yield records without end. Raises CommandFailed without the topic, KafkaUnavailable."""
    from confluent_kafka import Consumer, TopicPartition

    from outbox.kafka.client_config import answered, consumer_config
    from outbox.kafka.log_reader import KafkaLogReader, read_to_ends
    from outbox.reconciliation.log import LogEnd

    settings = settings_or_dev()
    stores = settings.required_bootstrap_servers(), settings.kafka_config
    reader = KafkaLogReader(*stores)
    places = reader.partitions([topic])
    if not places:
        raise CommandFailed(f"Kafka shows no topic {topic!r}", ExitCode.NOT_FOUND)
    reader.require_read([topic])
    first, last = (
        reader.offsets(places, end).offsets for end in (LogEnd.START, LogEnd.LAST_STABLE)
    )
    begins = {place: max(first[place], last[place] - EARLIER) for place in first.keys() & last}
    with answered(), closing(Consumer(consumer_config(*stores), logger=None)) as consumer:
        consumer.assign([TopicPartition(*place, at) for place, at in begins.items()])
        for message in read_to_ends(consumer, dict.fromkeys(begins, NO_END)):
            if message is not None:
                yield _shown(message)


def _shown(message: Any) -> dict[str, Any]:
    """Return a record with the members that the API gives a message."""
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        **text_or_base64("key", message.key()),
        **text_or_base64("value", message.value()),
        "headers": header_values(message.headers() or ()),
    }
