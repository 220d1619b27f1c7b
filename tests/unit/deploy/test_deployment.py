"""The operations stack and the set-up files describe the programs that there are."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest
import typer
import yaml  # type: ignore[import-untyped]

from cli.app import make_app
from outbox.settings.catalogue import SECRETS, Settings

PROJECT = Path(__file__).parents[3]
COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROGRAMS = ("migrate", "api", "checker")


def settings_of(service: dict[str, Any]) -> set[str]:
    return {name for name in service.get("environment", {}) if name.startswith("OUTBOX_")}


def test_it_runs_the_processes_of_outbox_dev_and_prometheus() -> None:
    assert set(SERVICES) == {"postgres", "kafka", *PROGRAMS, "logins", "prometheus"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_is_a_command_of_ours(name: str) -> None:
    command = typer.main.get_command(make_app())
    for word in SERVICES[name]["command"]:
        command = command.commands[word]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", PROGRAMS)
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
    "checker": {"checker_database_url", "encryption_keys"},
    "prometheus": set(),
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


def make_secrets(folder: Path) -> Path:
    """Run the script in a folder of the test; return what it has made."""
    shutil.copy(PROJECT / "deploy/make-secrets.sh", folder)
    subprocess.run([folder / "make-secrets.sh"], check=True, timeout=60, capture_output=True)
    return folder / "secrets"


def test_the_secrets_are_made_once_and_nobody_else_can_read_them(tmp_path: Path) -> None:
    made = make_secrets(tmp_path)
    texts = {path.name: path.read_text() for path in made.iterdir()}
    assert {Path(each["file"]).name for each in COMPOSE["secrets"].values()} == set(texts)
    assert len(set(texts.values())) == len(texts)
    assert made.stat().st_mode & 0o777 == 0o700
    assert make_secrets(tmp_path) == made
    assert {path.name: path.read_text() for path in made.iterdir()} == texts


def test_the_password_and_the_keys_of_an_older_installation_are_kept(tmp_path: Path) -> None:
    old = "POSTGRES_PASSWORD=p\nOUTBOX_AUTH_PEPPER=cGVwcGVy=\nOUTBOX_ENCRYPTION_KEYS=a2V5cw==\n"
    (tmp_path / "outbox.env").write_text(old)
    made = make_secrets(tmp_path)
    assert (made / "postgres_password").read_text() == "p"
    assert (made / "auth_pepper").read_text() == "cGVwcGVy="
    assert (made / "encryption_keys").read_text() == "a2V5cw=="


def test_the_programs_use_roles_that_may_do_only_their_work(tmp_path: Path) -> None:
    made = make_secrets(tmp_path)
    logins = (made / "logins.sql").read_text()
    for program in ("api", "checker"):
        assert secrets_of(SERVICES[program])["database_url"] == f"{program}_database_url"
        url = urlsplit((made / f"{program}_database_url").read_text())
        assert url.username == f"outbox_{program}"
        assert f"ALTER ROLE {url.username} LOGIN PASSWORD '{url.password}';" in logins


def test_migrate_ends_before_the_roles_log_in_and_the_programs_start() -> None:
    done = {"condition": "service_completed_successfully"}
    assert SERVICES["logins"]["depends_on"]["migrate"] == done
    for name in ("api", "checker"):
        assert SERVICES[name]["depends_on"]["logins"] == done
    for name in ("postgres", "kafka"):
        assert SERVICES["migrate"]["depends_on"][name] == {"condition": "service_healthy"}


@pytest.mark.parametrize("name", [name for name in SERVICES if name not in ("migrate", "logins")])
def test_what_stays_up_is_looked_at(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"]


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
    assert all(port.startswith("127.0.0.1:") for port in SERVICES[name].get("ports", ()))


def test_the_image_is_built_from_pinned_parts_and_ends_as_an_ordinary_user() -> None:
    lines = (PROJECT / "deploy/Dockerfile").read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-bookworm", bases[0])
    assert [line for line in lines if line.startswith("USER ")][-1] == "USER 10001:10001"
    installs = [line for line in lines if "pip install" in line]
    assert all("--require-hashes" in line or "--no-index" in line for line in installs)


def test_the_image_has_every_package_of_the_wheel() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    lines = (PROJECT / "deploy/Dockerfile").read_text().splitlines()
    assert {f"COPY {package} {package}" for package in wheel} <= set(lines)


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
        "test",
        "lint",
        "check",
        "bench",
        "chaos",
        "up",
        "down",
    }
    rare = {"kafka", "test-deep", "test-aged", "evidence", "chaos-controls", "chaos-matrix"}
    assert words == daily | rare


def pom(name: str) -> str:
    """Return a property of pom.xml."""
    space = "{http://maven.apache.org/POM/4.0.0}"
    root = ElementTree.parse(PROJECT / "pom.xml").getroot()
    value = root.findtext(f"{space}properties/{space}{name}")
    assert value
    return value
