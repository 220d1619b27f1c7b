"""`outbox migrate`: updates the database schema and the topic of the manifests."""

import typer

from cli.invocation.command_group import command_group
from cli.invocation.context import context_of
from cli.invocation.exit_codes import ExitCode
from cli.invocation.output import print_object
from cli.invocation.settings import database_url, settings_or_dev


def make_app() -> typer.Typer:
    """Build the command group."""
    return command_group(
        "Migrate the database schema and create the topic outbox.progress.",
        {
            "up": up,
            "status": status,
        },
    )


def up(context: typer.Context) -> None:
    """Migrate the database and create the topic outbox.progress; safe to run twice."""
    from cli.stores.schema import schema_state, upgrade
    from outbox.kafka.progress_topic import ensure_progress_topic

    invocation, url, settings = context_of(context), database_url(), settings_or_dev()
    bootstrap_servers = settings.required_bootstrap_servers()
    upgrade(url)
    invocation.say("the database schema is current")
    created = ensure_progress_topic(bootstrap_servers, settings.kafka_config)
    invocation.say(f"the topic outbox.progress {'was created' if created else 'exists already'}")
    print_object(invocation, {"revision": schema_state(url).current, "topic_created": created})


def status(context: typer.Context) -> None:
    """Show the revision of the schema; exits 1 when it is not the newest."""
    from cli.stores.schema import schema_state

    state = schema_state(database_url())
    facts = {"current": state.current, "newest": state.newest, "behind": not state.is_current}
    print_object(context_of(context), facts)
    if not state.is_current:
        raise typer.Exit(ExitCode.ERROR)
