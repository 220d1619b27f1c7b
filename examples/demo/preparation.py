"""Databases, topic and producer group of the two services; safe to repeat."""

import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

import psycopg
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from psycopg import sql
from sqlalchemy import create_engine

from examples.account_service.purchases import TOPIC
from examples.account_service.tables import create_tables
from outbox_client.sqlalchemy import SqlAlchemyBarrier

GROUP = "account-service"
USER = "shop"
PARTITIONS = 3
TOPIC_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Databases:
    """The addresses of the two services' databases."""

    account: str
    member: str


def prepare_stores(owner_url: str, bootstrap_servers: str, balances: dict[str, int]) -> Databases:
    """Create what the services need in both stores; open an account for each member."""
    databases = _databases(owner_url)
    engine = create_engine(databases.account)
    create_tables(engine, balances)
    SqlAlchemyBarrier().create_table(engine)
    engine.dispose()
    _create_topic(bootstrap_servers)
    return databases


def _databases(owner_url: str) -> Databases:
    """Create the services' user and databases; return their addresses."""
    password = secrets.token_urlsafe(24)
    with psycopg.connect(owner_url, autocommit=True) as connection:
        found = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [USER]).fetchone()
        verb = sql.SQL("CREATE" if found is None else "ALTER")
        role = sql.SQL("{} ROLE {} LOGIN PASSWORD {}")
        connection.execute(role.format(verb, sql.Identifier(USER), password))
        existing = {name for (name,) in connection.execute("SELECT datname FROM pg_database")}
        for name in {"account", "member"} - existing:
            create = sql.SQL("CREATE DATABASE {} OWNER {}")
            connection.execute(create.format(sql.Identifier(name), sql.Identifier(USER)))
    parts = urlsplit(owner_url)
    server = parts._replace(netloc=f"{USER}:{password}@{parts.hostname}:{parts.port}")
    return Databases(
        account=server._replace(path="/account").geturl(),
        member=server._replace(path="/member").geturl(),
    )


def _create_topic(bootstrap_servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    try:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(TOPIC_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
