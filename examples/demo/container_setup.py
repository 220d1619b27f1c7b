"""Prepare the demo of docker-compose.yml: databases, topic, keys, group; safe to run again.

``python -m examples.demo.container_setup FOLDER`` writes what the two services need to know into
the folder, one file each. The settings are those of the outbox: OUTBOX_DATABASE_URL (the owner's),
OUTBOX_KAFKA_BOOTSTRAP_SERVERS, OUTBOX_API_URL and OUTBOX_AUTH_PEPPER.
"""

import secrets
import sys
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from psycopg import sql
from sqlalchemy import create_engine

from cli.stores.bootstrap_key import create_in_database
from examples.account_service.purchases import TOPIC
from examples.account_service.tables import create_tables
from examples.demo.outbox import GroupSettings, Outbox
from outbox.clock import SystemClock
from outbox.settings.catalogue import Settings
from outbox.settings.environment import load_settings
from outbox_client.sqlalchemy import SqlAlchemyBarrier

GROUP = "account-service"
USER = "shop"
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
    urls = _databases(settings.required_database_url())
    for name, url in urls.items():
        (folder / f"{name}_database_url").write_text(url)
    with closing(create_engine(urls["account"]).connect()) as connection:
        create_tables(connection.engine, BALANCES)
        SqlAlchemyBarrier().create_table(connection.engine)
    _create_topic(settings.required_bootstrap_servers())
    key = create_in_database("account service", ["messages:write", "messages:end"], [GROUP], None)
    (folder / "api_key").write_text(key["api_key"])
    (folder / LAST).write_text(_register(settings))


def _databases(owner_url: str) -> dict[str, str]:
    """Create the services' user and databases; return the addresses."""
    password = secrets.token_urlsafe(24)
    names = ("account", "member")
    with psycopg.connect(owner_url, autocommit=True) as connection:
        found = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [USER]).fetchone()
        verb = sql.SQL("CREATE" if found is None else "ALTER")
        role = sql.SQL("{} ROLE {} LOGIN PASSWORD {}")
        connection.execute(role.format(verb, sql.Identifier(USER), password))
        there = {name for (name,) in connection.execute("SELECT datname FROM pg_database")}
        for name in set(names) - there:
            create = sql.SQL("CREATE DATABASE {} OWNER {}")
            connection.execute(create.format(sql.Identifier(name), sql.Identifier(USER)))
    parts = urlsplit(owner_url)
    place = f"{USER}:{password}@{parts.hostname}:{parts.port}"
    return {name: parts._replace(netloc=place, path=f"/{name}").geturl() for name in names}


def _create_topic(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    try:
        admin.create_topics([NewTopic(TOPIC, 3, 1)])[TOPIC].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _register(settings: Settings) -> str:
    """Register the group with a key that is valid for minutes; return the check secret."""
    soon = SystemClock().now() + timedelta(minutes=10)
    admin = create_in_database("demo set-up", ["admin"], ["*"], soon)
    with Outbox(str(settings.api_url), admin["api_key"]) as outbox:
        return outbox.register_group(GROUP, CHECKS)


if __name__ == "__main__":
    main()
