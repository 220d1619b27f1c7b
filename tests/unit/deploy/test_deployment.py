"""The operations stack and the set-up files describe the programs that there are."""

import re
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer
import yaml  # type: ignore[import-untyped]

from api.__main__ import GRACE_SECONDS
from cli.app import make_app
from outbox.settings.catalogue import SECRETS, Settings
from spark.__main__ import _parser

PROJECT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROGRAMS = ("migrate", "api", "checker")
ONE_SHOT = ("migrate", "logins", "demo-setup")
GLOBAL_FLAGS = ["--output", "jsonl", "--quiet"]
"""Of `migrate`: one line of JSON is its whole log."""
NO_OWN_CHECK = {*ONE_SHOT, "reconcile", "member"}
"""Nothing asks them: an audit that is late is an alert, OutboxReconcileStale; a member consumes."""
OPEN_TO_ALL = {"tls"}
"""Published on every address of the machine; the others on loopback alone."""
PROFILES = {
    "reconcile": ["spark"],
    "prometheus": ["observability"],
    "grafana": ["observability"],
    "tls": ["tls"],
    "demo-setup": ["demo"],
    "account": ["demo"],
    "member": ["demo"],
}


def settings_of(service: dict[str, Any]) -> set[str]:
    return {name for name in service.get("environment", {}) if name.startswith("OUTBOX_")}


def test_it_runs_the_processes_of_outbox_dev_and_profiles_add_the_rest() -> None:
    assert set(SERVICES) == {"postgres", "kafka", *PROGRAMS, "logins", "proxy", *PROFILES}
    assert {name: each["profiles"] for name, each in SERVICES.items() if "profiles" in each} == (
        PROFILES
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_is_a_command_of_ours(name: str) -> None:
    command = typer.main.get_command(make_app())
    words = SERVICES[name]["command"]
    for word in words[len(GLOBAL_FLAGS) :] if words[0].startswith("-") else words:
        command = command.commands[word]  # type: ignore[attr-defined]
    assert words[: len(GLOBAL_FLAGS)] == GLOBAL_FLAGS or not words[0].startswith("-")


def test_the_audit_has_words_of_its_program() -> None:
    words = [re.sub(r"\$\{\w+:-(.*)\}", r"\1", word) for word in SERVICES["reconcile"]["command"]]
    assert _parser().parse_args(words).every == 3600


@pytest.mark.parametrize("name", [*PROGRAMS, "reconcile", "demo-setup"])
def test_each_setting_is_one_of_ours(name: str) -> None:
    known = {f"OUTBOX_{field.upper()}" for field in Settings.model_fields}
    assert {name.removesuffix("_FILE") for name in settings_of(SERVICES[name])} <= known
    assert settings_of(SERVICES[name]), "a program without settings"


def secrets_of(service: dict[str, Any]) -> dict[str, str]:
    """Return the secrets of a service by the names of their files in the container."""
    pairs = (
        (each, each) if isinstance(each, str) else (each["target"], each["source"])
        for each in service.get("secrets", ())
    )
    return dict(pairs)


SEEN = {
    "postgres": {"postgres_password"},
    "kafka": set(),
    "migrate": {"owner_database_url"},
    "logins": {"postgres_password", "logins"},
    "api": {"api_database_url", "auth_pepper", "encryption_keys"},
    "proxy": set(),
    "checker": {"checker_database_url", "encryption_keys"},
    "reconcile": {"reconcile_database_url"},
    "prometheus": set(),
    "grafana": {"grafana_password"},
    "tls": {"tls_certificate", "tls_key"},
    "demo-setup": {"owner_database_url", "auth_pepper"},
    "account": set(),
    "member": set(),
}


@pytest.mark.parametrize("name", SERVICES)
def test_each_container_sees_its_own_secrets_alone_and_as_files(name: str) -> None:
    service = SERVICES[name]
    assert set(secrets_of(service).values()) == SEEN[name]
    assert "env_file" not in service
    secret = {f"OUTBOX_{each.upper()}" for each in SECRETS}
    assert not settings_of(service) & secret
    named = {
        text.removeprefix("/run/secrets/")
        for text in map(str, service.get("environment", {}).values())
        if text.startswith("/run/secrets/")
    }
    assert named <= set(secrets_of(service))


def test_migrate_ends_before_the_roles_log_in_and_the_programs_start() -> None:
    done = {"condition": "service_completed_successfully"}
    assert SERVICES["logins"]["depends_on"]["migrate"] == done
    for name in ("api", "checker", "reconcile"):
        assert SERVICES[name]["depends_on"]["logins"] == done
    for name in ("postgres", "kafka"):
        assert SERVICES["migrate"]["depends_on"][name] == {"condition": "service_healthy"}


@pytest.mark.parametrize("name", [name for name in SERVICES if name not in NO_OWN_CHECK])
def test_what_stays_up_is_looked_at(name: str) -> None:
    words = " ".join(SERVICES[name]["healthcheck"]["test"])
    assert not re.search(r"kafka-[\w-]+\.sh|java", words), "a JVM every few seconds"
    assert "pg_isready" not in words, "it is content without the database"


@pytest.mark.parametrize("name", SERVICES)
def test_each_container_has_limits_and_its_log_is_rotated(name: str) -> None:
    service = SERVICES[name]
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}


@pytest.mark.parametrize("name", ["postgres", "kafka"])
def test_a_store_that_recovers_after_a_crash_has_minutes_before_it_counts_as_broken(
    name: str,
) -> None:
    assert SERVICES[name]["healthcheck"]["start_period"] == "10m"


def test_the_stores_have_time_to_stop_and_the_database_has_shared_memory_and_locks() -> None:
    assert {SERVICES[name]["stop_grace_period"] for name in ("postgres", "kafka")} == {"60s"}
    assert SERVICES["postgres"]["shm_size"] == "256m"
    assert "max_locks_per_transaction=256" in SERVICES["postgres"]["command"]


@pytest.mark.parametrize("name", ["api", "checker"])
def test_a_stop_leaves_a_program_the_time_that_an_api_may_take(name: str) -> None:
    assert int(SERVICES[name]["stop_grace_period"].removesuffix("s")) > GRACE_SECONDS


def test_only_programs_of_ours_and_the_broker_share_the_databases_network() -> None:
    inside = {name for name, each in SERVICES.items() if "data" in each["networks"]}
    demo = {name for name, profiles in PROFILES.items() if profiles == ["demo"]}
    assert inside == {"postgres", "kafka", *PROGRAMS, "logins", "reconcile", *demo}
    assert SERVICES["postgres"]["networks"] == ["data"]
    assert COMPOSE["networks"]["data"] == {"internal": True}


def test_every_volume_of_the_brokers_image_has_a_name() -> None:
    named = {each.partition(":")[0] for each in SERVICES["kafka"]["volumes"]}
    assert named <= COMPOSE["volumes"].keys()
    folders = {each.partition(":")[2] for each in SERVICES["kafka"]["volumes"]}
    assert folders == {"/var/lib/kafka/data", "/etc/kafka/secrets", "/mnt/shared/config"}


def test_clients_on_this_machine_have_a_listener_with_the_port_that_is_published() -> None:
    kafka = SERVICES["kafka"]
    (port,) = kafka["ports"]
    outside, inside = port.removeprefix("127.0.0.1:").rsplit(":", 1)
    assert f"HOST://localhost:{outside}" in kafka["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert f"HOST://:{inside}" in kafka["environment"]["KAFKA_LISTENERS"]


def test_the_broker_keeps_its_own_topics_alone_those_of_share_groups_too() -> None:
    given = SERVICES["kafka"]["environment"]
    for topic in ("OFFSETS_TOPIC", "TRANSACTION_STATE_LOG", "SHARE_COORDINATOR_STATE_TOPIC"):
        assert given[f"KAFKA_{topic}_REPLICATION_FACTOR"] == "1"
    for topic in ("TRANSACTION_STATE_LOG", "SHARE_COORDINATOR_STATE_TOPIC"):
        assert given[f"KAFKA_{topic}_MIN_ISR"] == "1"


def test_no_proxy_of_ours_repeats_a_request() -> None:
    text = (PROJECT / "deploy" / "nginx" / "api.conf").read_text("utf-8")
    assert text.count("proxy_pass") == text.count("proxy_next_upstream off;") == 1


def test_each_tag_is_built_by_one_service() -> None:
    built = [each["image"] for each in SERVICES.values() if "build" in each]
    assert len(built) == len(set(built))
    assert {each["image"] for each in SERVICES.values() if each["image"].startswith("outbox")} == (
        set(built)
    )


def test_checks_reach_producers_on_this_machine() -> None:
    for name in ("api", "checker"):
        assert SERVICES[name]["extra_hosts"] == ["host.docker.internal:host-gateway"]
        allowed = SERVICES[name]["environment"]["OUTBOX_CHECK_ALLOW_HOSTS"]
        assert "host.docker.internal" in allowed


def test_spark_may_run_what_it_unpacks_and_writes_only_to_volumes() -> None:
    reconcile = SERVICES["reconcile"]
    assert reconcile["tmpfs"] == ["/tmp:exec"]
    assert {each.partition(":")[2] for each in reconcile["volumes"]} == {"/reports", "/stage"}
    lines = (PROJECT / "deploy/spark/Dockerfile").read_text()
    assert "WORKDIR /tmp\n" in lines
    assert "OUTBOX_RECONCILE_REPORT_DIR=/reports" in lines


@pytest.mark.parametrize("name", SERVICES)
def test_nothing_runs_as_root_or_gains_privileges(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] not in ("root", "0", "0:0")
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]


@pytest.mark.parametrize("name", [name for name in SERVICES if name != "kafka"])
def test_the_root_file_system_is_read_only(name: str) -> None:
    assert SERVICES[name]["read_only"] is True


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned_and_ports_are_on_loopback(name: str) -> None:
    assert re.search(r":v?\d+\.\d+", SERVICES[name]["image"])
    ports = SERVICES[name].get("ports", ())
    assert all(port.startswith("127.0.0.1:") for port in ports) or name in OPEN_TO_ALL
    assert all(re.search(r":?\$\{[A-Z]+_PORT:-\d+\}:\d+$", port) for port in ports)


def test_the_broker_and_the_database_are_the_versions_of_outbox_dev() -> None:
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{pom('kafka.version')}"
    newest = pom("postgresql.version").removesuffix(".0")
    assert SERVICES["postgres"]["image"].startswith(f"postgres:{newest}-")


def test_sparks_connector_is_the_version_of_pyspark() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]["spark"]
    assert f"pyspark[connect]=={pom('spark.version')}" in extras


def test_make_has_the_documented_words_and_no_others() -> None:
    text = (PROJECT / "Makefile").read_text()
    words = set(re.findall(r"^([a-z-]+):.*## ", text, re.M))
    daily = {
        "help",
        "setup",
        "demo",
        "dev",
        "client",
        "test",
        "lint",
        "check",
        "bench",
        "chaos",
        "up",
        "down",
    }
    rare = {
        "kafka",
        "test-deep",
        "test-compose",
        "pictures",
    }
    assert words == daily | rare


def pom(name: str) -> str:
    """Return a property of pom.xml."""
    space = "{http://maven.apache.org/POM/4.0.0}"
    root = ElementTree.parse(PROJECT / "pom.xml").getroot()
    value = root.findtext(f"{space}properties/{space}{name}")
    assert value
    return value
