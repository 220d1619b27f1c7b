"""Grafana and Prometheus of the stack: whom they tell something, and who may change them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from tests.fixtures_paths import PROJECT

SERVICES: Final[dict[str, dict[str, Any]]] = yaml.safe_load(
    (PROJECT / "docker-compose.yml").read_text("utf-8")
)["services"]
GRAFANA, PROMETHEUS = SERVICES["grafana"], SERVICES["prometheus"]
PROVISIONING: Final = PROJECT / "deploy/grafana/provisioning"
CONFIG: Final = PROJECT / "deploy/prometheus.yml"
SCRAPED: Final[dict[str, Any]] = yaml.safe_load(CONFIG.read_text("utf-8"))
PROMTOOL: Final = shutil.which("promtool")
CLOSED: Final = {
    "GF_SNAPSHOTS_EXTERNAL_ENABLED": "false",  # a button that sends a dashboard to a public server
    "GF_SECURITY_DISABLE_GRAVATAR": "true",  # the browser would send a hash of the user's address
    "GF_NEWS_NEWS_FEED_ENABLED": "false",
    "GF_ANALYTICS_REPORTING_ENABLED": "false",
    "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
    "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
    "GF_PLUGINS_PREINSTALL_DISABLED": "true",  # it would fetch programs and run them
    "GF_USERS_ALLOW_SIGN_UP": "false",
}
"""The settings that keep Grafana from sending, fetching and letting in; each default is open."""
PASSWORD: Final = "GF_SECURITY_ADMIN_PASSWORD__FILE"


@pytest.mark.parametrize("name", CLOSED)
def test_grafana_sends_nothing_away_and_lets_nobody_in_by_itself(name: str) -> None:
    assert GRAFANA["environment"].get(name) == CLOSED[name]


def test_grafana_has_no_other_setting_such_as_anonymous_access() -> None:
    """The defaults ask for a password and allow no frame: nothing else may be set unseen."""
    assert GRAFANA["environment"].keys() == {*CLOSED, PASSWORD}


def test_grafanas_password_is_a_file_of_its_own() -> None:
    assert GRAFANA["environment"][PASSWORD] == "/run/secrets/grafana_password"
    assert GRAFANA["secrets"] == ["grafana_password"]
    users = [name for name, each in SERVICES.items() if "grafana_password" in str(each)]
    assert users == ["grafana"]


def test_grafana_shows_the_files_and_nobody_changes_them_in_the_browser() -> None:
    (provider,) = provisioned("dashboards")["providers"]
    assert provider["allowUiUpdates"] is False
    assert provider["options"]["path"] in {target(each) for each in GRAFANA["volumes"]}
    (source,) = provisioned("datasources")["datasources"]
    assert source["editable"] is False
    # The browser of a user must not need a way to Prometheus, which asks nobody for a password.
    assert source["access"] == "proxy"
    assert source["url"] == f"http://prometheus:{inner_port(PROMETHEUS)}"
    assert not source.keys() & {"password", "secureJsonData", "basicAuth", "user"}


@pytest.mark.parametrize("service", ["grafana", "prometheus"])
def test_what_is_shipped_is_mounted_to_be_read_only(service: str) -> None:
    shipped = [each for each in SERVICES[service]["volumes"] if each.startswith("./")]
    assert shipped
    assert all(each.endswith(":ro") for each in shipped)
    assert all((PROJECT / each.partition(":")[0]).exists() for each in shipped)


def test_the_dashboards_choose_among_sources_of_its_type() -> None:
    (source,) = provisioned("datasources")["datasources"]
    for path in (PROJECT / "deploy/grafana/dashboards").glob("*.json"):
        variables = json.loads(path.read_text("utf-8"))["templating"]["list"]
        assert [each["query"] for each in variables if each["type"] == "datasource"] == [
            source["type"]
        ]


def test_nobody_deletes_reloads_or_writes_over_the_network_in_prometheus() -> None:
    """`--web.enable-lifecycle`, `-admin-api` and `-remote-write-receiver` ask for no password."""
    options = {each.partition("=")[0] for each in PROMETHEUS["command"]}
    assert options == {"--config.file", "--storage.tsdb.path"}
    assert SCRAPED.keys() == {"global", "rule_files", "scrape_configs"}, "remote_write sends away"


def test_prometheus_asks_the_programs_of_the_stack_where_they_answer() -> None:
    asked = {
        target
        for job in SCRAPED["scrape_configs"]
        for group in job["static_configs"]
        for target in group["targets"]
    }
    served = {
        "api": SERVICES["api"]["environment"]["OUTBOX_HTTP_BIND"],
        "checker": SERVICES["checker"]["environment"]["OUTBOX_CHECKER_METRICS_BIND"],
    }
    assert asked == {f"{name}:{bind.rpartition(':')[2]}" for name, bind in served.items()}
    for name in served:
        assert set(SERVICES[name]["networks"]) & set(PROMETHEUS["networks"])


@pytest.mark.skipif(PROMTOOL is None, reason="promtool (of Prometheus) is not on the PATH")
def test_prometheus_reads_its_configuration_and_every_rule(tmp_path: Path) -> None:
    mounted = {target(each): PROJECT / each.partition(":")[0] for each in PROMETHEUS["volumes"]}
    for place, source in mounted.items():
        if place.startswith("/etc/prometheus/"):
            (tmp_path / place.rpartition("/")[2]).symlink_to(source)
    done = subprocess.run(
        [str(PROMTOOL), "check", "config", str(tmp_path / CONFIG.name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for path in (PROJECT / "deploy/alerts").glob("*.yml"):
        assert f"alerts/{path.name}\n  SUCCESS: " in done.stdout


def provisioned(what: str) -> dict[str, Any]:
    """Return the one provisioning file of this kind."""
    (path,) = (PROVISIONING / what).iterdir()
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return found


def target(volume: str) -> str:
    """Return the place of a volume in its container."""
    return volume.removesuffix(":ro").rpartition(":")[2]


def inner_port(service: dict[str, Any]) -> str:
    """Return the port of a service that has one."""
    (port,) = service["ports"]
    return str(port).rpartition(":")[2]
