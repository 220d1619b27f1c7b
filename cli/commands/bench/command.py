"""`outbox bench`: options and output."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from cli.commands.bench.load import WAIT_SECONDS, Load, Measured, Mode, send
from cli.invocation.context import context_of
from cli.invocation.output import print_object
from cli.service.api_client import api_client

PERCENTILES = {"p50_ms": 0.50, "p95_ms": 0.95, "p99_ms": 0.99}
STEPS = 10


def bench(
    context: typer.Context,
    *,
    group: Annotated[
        str, typer.Option("--group", "--producer-group", help="A registered producer group.")
    ],
    topic: Annotated[
        str, typer.Option(help="Topic for the records; only prepare leaves it empty.")
    ],
    mode: Annotated[
        Mode,
        typer.Option(help="prepare; cycle: with its COMMIT; relay: until Kafka has the record."),
    ] = Mode.CYCLE,
    messages: Annotated[
        int, typer.Option(metavar="COUNT", min=1, max=1_000_000, help="Number of messages.")
    ] = 1000,
    size: Annotated[
        int, typer.Option(metavar="BYTES", min=0, max=1_000_000, help="Size of each value.")
    ] = 200,
    batch: Annotated[
        int, typer.Option(metavar="COUNT", min=1, max=1000, help="Messages in each request.")
    ] = 1,
    concurrency: Annotated[
        int, typer.Option(metavar="COUNT", min=1, max=64, help="Requests at the same time.")
    ] = 16,
) -> None:
    """Put a small load on the service, and print its rate and latencies in milliseconds.

    A key needs messages:write and messages:end.
    """
    invocation = context_of(context)
    load = Load(
        mode=mode,
        messages=messages,
        size=size,
        batch=batch,
        concurrency=concurrency,
        producer_group=group,
        topic=topic,
    )
    told = 0

    def progress(done: int) -> None:
        nonlocal told
        if done * STEPS // messages > told:
            told = done * STEPS // messages
            invocation.say(f"{done} of {messages} messages")

    with api_client(context, extra_seconds=WAIT_SECONDS) as api:
        measured = send(api, load, progress)
        version = api.get("/version")
    print_object(invocation, {**figures(measured, load), **asdict(load), **version})


def figures(measured: Measured, load: Load) -> dict[str, Any]:
    """Return the rate, and the latencies of one request or of the requests of one operation."""
    latencies = {
        name: round(measured.percentile(share) * 1000, 1) for name, share in PERCENTILES.items()
    }
    rate = round(load.messages / measured.seconds, 1)
    return {"messages_per_second": rate, **latencies, "seconds": round(measured.seconds, 3)}
