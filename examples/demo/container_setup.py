"""Prepare the profile `demo` of docker-compose.yml; safe to run again.

``python -m examples.demo.container_setup FOLDER`` writes what the two services need to know into
the folder, one file each. The settings are those of the outbox: OUTBOX_DATABASE_URL (the owner's),
OUTBOX_KAFKA_BOOTSTRAP_SERVERS, OUTBOX_API_URL and OUTBOX_AUTH_PEPPER.
"""

import sys
from datetime import timedelta
from pathlib import Path

from cli.stores.bootstrap_key import create_in_database
from examples.demo.outbox import GroupSettings, Outbox
from examples.demo.preparation import GROUP, prepare_stores
from outbox.clock import SystemClock
from outbox.settings.environment import load_settings

BALANCES = {"alice": 1000, "bob": 1000}
CHECKS = GroupSettings(
    check_url="http://account:8101/outbox/check",
    transaction_timeout_seconds=2,
    check_interval_seconds=5,
    check_max=15,
)
LAST = "check_secret"
"""The file that is written last."""


def main() -> None:
    """Prepare everything, unless that was done before."""
    folder = Path(sys.argv[1])
    if (folder / LAST).exists():
        return
    settings = load_settings()
    servers = settings.required_bootstrap_servers()
    databases = prepare_stores(settings.required_database_url(), servers, BALANCES)
    (folder / "account_database_url").write_text(databases.account)
    (folder / "member_database_url").write_text(databases.member)
    key = create_in_database("account service", ["messages:write", "messages:end"], [GROUP], None)
    (folder / "api_key").write_text(key["api_key"])
    soon = SystemClock().now() + timedelta(minutes=10)
    admin = create_in_database("demo set-up", ["admin"], ["*"], soon)
    with Outbox(str(settings.api_url), admin["api_key"]) as outbox:
        (folder / LAST).write_text(outbox.register_group(GROUP, CHECKS))


if __name__ == "__main__":
    main()
