"""What the help of each command shows: one example, which a test runs, and its summary.

A word in capitals stands for what the command before it has shown.
"""

from collections.abc import Mapping
from inspect import getdoc
from typing import Final

import typer

EXAMPLES: Final[Mapping[str, str]] = {
    "dev": "outbox dev --data-dir .outbox-dev --api-port 8080",
    "api": "outbox api --bind 127.0.0.1:8080",
    "checker": "outbox checker --only check,sweep",
    "status": "outbox status",
    "doctor": "outbox doctor",
    "bench": "outbox bench --group orders --topic bench --mode relay --messages 100",
    "migrate up": "outbox migrate up",
    "migrate status": "outbox migrate status",
    "reconcile list": "outbox reconcile list --limit 5",
    "reconcile show": "outbox reconcile show RUN_ID --kind missing",
    "reconcile fix": "outbox reconcile fix RUN_ID --class LOST",
    "message list": "outbox message list --state PARKED --group orders",
    "message show": "outbox message show MESSAGE_ID --history",
    "message tail": "outbox message tail invoices.issued --limit 1",
    "message end": "outbox message end MESSAGE_ID --decision COMMIT",
    "message recheck": 'outbox message recheck MESSAGE_ID --reason "endpoint is back"',
    "message force-end": (
        "outbox message force-end --filter group=orders --decision ROLLBACK"
        ' --reason "never happened" --dry-run'
    ),
    "group apply": "outbox group apply groups.yml",
    "group set": "outbox group set orders --check-url http://127.0.0.1:8090/check --check-max 20",
    "group show": "outbox group show orders",
    "group list": "outbox group list",
    "group test": "outbox group test orders",
    "group pause": 'outbox group pause orders --reason "maintenance until noon"',
    "group resume": 'outbox group resume orders --reason "maintenance is over"',
    "group rotate-secret": "outbox group rotate-secret orders --overlap-seconds 3600",
    "key create": (
        "outbox key create --name orders-app --group orders"
        " --scope messages:write --scope messages:end --expires-in 90d"
    ),
    "key list": "outbox key list",
    "key revoke": "outbox key revoke KEY_ID",
    "check simulate": "outbox check simulate http://127.0.0.1:8090/check --group orders",
    "shard list": "outbox shard list",
    "shard show": "outbox shard show 3",
    "shard resolve": 'outbox shard resolve 3 --scan --reason "rows of outbox.progress are gone"',
    "held list": "outbox held list",
    "held release": 'outbox held release MESSAGE_ID --reason "the limit was raised"',
    "held drop": 'outbox held drop MESSAGE_ID --reason "sent by hand"',
    "audit list": "outbox audit list --group orders --action message.force_end",
    "installation renew": 'outbox installation renew --reason "a copy for staging"',
    "installation rebase": 'outbox installation rebase --reason "restored from the backup"',
    "config show": "outbox config show",
}
"""By the words of the command."""


def add_examples(app: typer.Typer, words: tuple[str, ...] = ()) -> None:
    """Give each command of ``app`` its example, and in lists its whole summary."""
    for command in app.registered_commands:
        name = " ".join((*words, str(command.name)))
        if name in EXAMPLES:
            command.epilog = f"Example: {EXAMPLES[name]}"
        summary, _, _ = (getdoc(command.callback) or "").partition("\n\n")
        command.short_help = " ".join(summary.split())
    for group in app.registered_groups:
        if group.typer_instance is not None:
            group.short_help = group.typer_instance.info.help
            add_examples(group.typer_instance, (*words, str(group.name)))
