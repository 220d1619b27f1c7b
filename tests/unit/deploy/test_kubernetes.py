"""The manifests fit Kubernetes' own schemas, and name programs, settings and secrets that exist."""

from __future__ import annotations

import json
from typing import Any, Final

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import typer
import yaml  # type: ignore[import-untyped]

from api.guard import is_public
from cli.app import make_app
from outbox.errors import ConfigurationError
from outbox.settings.catalogue import SECRETS
from outbox.settings.environment import load_settings
from tests.fixtures_paths import PROJECT

FOLDER: Final = PROJECT / "deploy/kubernetes"
KUSTOMIZATION: Final = yaml.safe_load((FOLDER / "kustomization.yml").read_text())
FILES: Final = [FOLDER / name for name in KUSTOMIZATION["resources"]]
CRON_JOB: Final = PROJECT / "deploy/spark/cronjob.yml"
OLDEST, NEWEST = "1.29", kubernetes_validate.latest_version()
GLOBAL_FLAGS: Final = ["--output", "jsonl", "--quiet"]


def documents() -> list[dict[str, Any]]:
    """Return every object of the set, and the audit's."""
    return [each for path in (*FILES, CRON_JOB) for each in yaml.safe_load_all(path.read_text())]


def named(document: dict[str, Any]) -> str:
    return f"{document['kind']}/{document['metadata']['name']}"


def pods() -> dict[str, dict[str, Any]]:
    """Return the pod of each job and each deployment of the set."""
    kinds = ("Deployment", "Job")
    found = [each for each in documents() if each["kind"] in kinds]
    return {each["metadata"]["name"]: each["spec"]["template"] for each in found}


PODS: Final = pods()


def every_pod() -> dict[str, dict[str, Any]]:
    """Return the pods of the set, and the audit's."""
    audit = yaml.safe_load(CRON_JOB.read_text())["spec"]["jobTemplate"]["spec"]["template"]
    return PODS | {"audit": audit}


def environment(name: str) -> dict[str, str]:
    """Return the settings that a pod has of its own."""
    (container,) = PODS[name]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"]}


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("document", documents(), ids=named)
def test_an_object_fits_the_schema(document: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("name", PODS)
def test_a_pod_runs_a_command_of_ours_and_its_secrets_are_no_settings(name: str) -> None:
    (container,) = PODS[name]["spec"]["containers"]
    command = typer.main.get_command(make_app())
    words = container["args"]
    for word in words[len(GLOBAL_FLAGS) :] if words[0].startswith("-") else words:
        command = command.commands[word]  # type: ignore[attr-defined]
    assert not environment(name).keys() & {f"OUTBOX_{each.upper()}" for each in SECRETS}


def test_the_shared_settings_can_be_read() -> None:
    (config,) = (each["data"] for each in documents() if each["kind"] == "ConfigMap")
    settings = load_settings(config)
    assert settings.check_allow_cidrs == ()
    assert settings.required_bootstrap_servers() == "kafka:9092"


@pytest.mark.parametrize("name", PODS)
def test_a_pod_sees_its_own_secrets_as_files_and_gains_no_privileges(name: str) -> None:
    pod = PODS[name]["spec"]
    (container,) = pod["containers"]
    (secret,) = (each["secret"] for each in pod["volumes"] if "secret" in each)
    assert secret == {"secretName": name, "defaultMode": 0o440}
    mounted = {each["mountPath"]: each.get("readOnly", False) for each in container["volumeMounts"]}
    assert mounted == {"/run/secrets/outbox": True, "/tmp": False}
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("name", ["outbox-api", "outbox-checker"])
def test_a_pod_is_not_restarted_while_a_store_is_away(name: str) -> None:
    """`/readyz` asks both stores: a probe of it would end every pod in an outage."""
    (container,) = PODS[name]["spec"]["containers"]
    probes = [each["httpGet"] for field, each in container.items() if field.endswith("Probe")]
    assert {each["path"] for each in probes} <= {"/livez", "/metrics"}
    assert all(is_public(each["path"]) for each in probes)
    assert {each["port"] for each in probes} <= {each["name"] for each in container["ports"]}
    assert {"startupProbe", "livenessProbe"} <= container.keys()


def test_no_pod_gets_settings_from_the_names_of_services() -> None:
    """Kubernetes adds OUTBOX_API_PORT for a Service `outbox-api`: it is no setting."""
    with pytest.raises(ConfigurationError, match="OUTBOX_API_PORT"):
        load_settings({"OUTBOX_API_PORT": "tcp://10.0.0.1:8080"})
    for name, template in every_pod().items():
        assert template["spec"]["enableServiceLinks"] is False, name


def test_only_the_namespace_of_prometheus_reaches_metrics() -> None:
    served = {
        (name, port["containerPort"])
        for name, template in PODS.items()
        for port in template["spec"]["containers"][0].get("ports", ())
        if port["name"] == "metrics"
    }
    allowed: dict[tuple[str, int], set[str]] = {}
    for policy in (each for each in documents() if each["kind"] == "NetworkPolicy"):
        for rule in policy["spec"]["ingress"]:
            who = json.dumps(rule.get("from", "everybody"))
            for port in rule["ports"]:
                allowed.setdefault((policy["metadata"]["name"], port["port"]), set()).add(who)
    prometheus = [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]
    assert served == {("outbox-api", 9463), ("outbox-checker", 9464)}
    assert all(allowed[each] == {json.dumps(prometheus)} for each in served)
    assert environment("outbox-api")["OUTBOX_METRICS_BIND"].endswith(":9463")
