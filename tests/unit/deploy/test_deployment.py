"""The stack of docker-compose.yml: its settings and secrets are ours, and nothing is too open."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from outbox.settings.catalogue import SECRETS, Settings
from tests.unit.deploy.fixtures_compose import COMPOSE

PROJECT = Path(__file__).parents[3]
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
FILES = [
    PROJECT / "docker-compose.yml",
    *sorted((PROJECT / "deploy/kubernetes").glob("*.yml")),
    *sorted((PROJECT / "deploy/spark").glob("*")),
]
"""All that name settings of the programs."""
OPEN_TO_ALL = {"tls"}
"""Published on every address of the machine; the others only on loopback."""
SEEN = {
    "postgres": {"postgres_password"},
    "kafka": set(),
    "migrate": {"owner_database_url"},
    "logins": {"postgres_password", "logins"},
    "proxy": set(),
    "api": {"api_database_url", "auth_pepper", "encryption_keys"},
    "checker": {"checker_database_url", "encryption_keys"},
    "reconcile": {"reconcile_database_url"},
    "prometheus": set(),
    "grafana": {"grafana_password"},
    "tls": {"tls_certificate", "tls_key"},
    "demo-setup": {"owner_database_url", "auth_pepper"},
    "account": set(),
    "member": set(),
}


def settings_of(service: dict[str, Any]) -> set[str]:
    return {name for name in service.get("environment", {}) if name.startswith("OUTBOX_")}


def secrets_of(service: dict[str, Any]) -> set[str]:
    return {
        each if isinstance(each, str) else each["source"] for each in service.get("secrets", ())
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_each_setting_that_a_file_names_is_one_of_ours(path: Path) -> None:
    known = {f"OUTBOX_{field.upper()}" for field in Settings.model_fields}
    named = re.findall(r"\bOUTBOX_[A-Z_]*[A-Z]", path.read_text("utf-8"))
    assert {each.removesuffix("_FILE") for each in named} <= known


@pytest.mark.parametrize("name", SERVICES)
def test_each_container_sees_only_its_own_secrets_and_as_files(name: str) -> None:
    service = SERVICES[name]
    assert secrets_of(service) == SEEN[name]
    assert "env_file" not in service
    assert not settings_of(service) & {f"OUTBOX_{each.upper()}" for each in SECRETS}


@pytest.mark.parametrize("name", SERVICES)
def test_each_container_is_confined(name: str) -> None:
    service = SERVICES[name]
    assert service["user"] not in ("root", "0", "0:0")
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service.get("read_only") or name == "kafka"
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert service["logging"]["options"].keys() == {"max-size", "max-file"}
    assert re.search(r":v?\d+\.\d+", service["image"])
    ports = service.get("ports", ())
    assert all(port.startswith("127.0.0.1:") for port in ports) or name in OPEN_TO_ALL


def test_migrate_ends_before_the_roles_log_in_and_the_programs_start() -> None:
    done = {"condition": "service_completed_successfully"}
    assert SERVICES["logins"]["depends_on"]["migrate"] == done
    for name in ("api", "checker", "reconcile"):
        assert SERVICES[name]["depends_on"]["logins"] == done
    for name in ("postgres", "kafka"):
        assert SERVICES["migrate"]["depends_on"][name] == {"condition": "service_healthy"}


def test_the_database_is_reached_only_in_a_network_of_its_own() -> None:
    assert SERVICES["postgres"]["networks"] == ["data"]
    assert COMPOSE["networks"]["data"] == {"internal": True}


def test_no_proxy_of_ours_repeats_a_request() -> None:
    """A repeated prepare without an idempotency key would be stored twice."""
    text = (PROJECT / "deploy" / "nginx" / "api.conf").read_text("utf-8")
    assert text.count("proxy_pass") == text.count("proxy_next_upstream off;") == 1


def test_the_image_is_built_from_pinned_parts_and_ends_as_an_ordinary_user() -> None:
    lines = (PROJECT / "deploy/Dockerfile").read_text().splitlines()
    bases = {line.split()[1] for line in lines if line.startswith("FROM ")}
    assert all(re.fullmatch(r"service|python:\d+\.\d+\.\d+-slim-bookworm", each) for each in bases)
    assert [line for line in lines if line.startswith("USER ")][-1] == "USER 10001:10001"
    installs = [line for line in lines if re.search(r"\bpip .*install", line)]
    assert len(installs) == 3
    assert "RUN python -m venv --without-pip /opt/outbox" in lines
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)
