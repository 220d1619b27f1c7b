"""A CycloneDX bill of materials of what a release runs; `deploy/release.py` writes it.

``python deploy/bill_of_materials.py 0.2.0`` prints it. Component `scope`: ``required`` for every
process, ``optional`` for the reconciliation and for `outbox dev`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from api.console.static_file import HTMX_SHA256, HTMX_VERSION  # noqa: E402
from devservers.artifact_lock import LockedArtifact, read_lock  # noqa: E402

LOCKS = {"base.txt": "required", "spark.txt": "optional"}
SHIPPED = ("kafka", "postgres", "spark")
"""Of the folders that Maven fills, those of `make setup`; the others are for tests."""
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ \\;]+)", re.MULTILINE)


def bill_of_materials(version: str) -> str:
    """Return the document; equal locks give equal bytes."""
    components = [*_python_components(), *_jar_components(), _script_component()]
    text = json.dumps(components, sort_keys=True)
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, version + text)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "outbox",
                "name": "outbox",
                "version": version,
            }
        },
        "components": components,
    }
    return json.dumps(document, indent=1) + "\n"


def _python_components() -> list[dict[str, Any]]:
    """Return each pinned package once; one that every process needs is required."""
    scopes: dict[tuple[str, str], str] = {}
    for name, scope in LOCKS.items():
        for package in _PINNED.findall((PROJECT / "requirements" / name).read_text("utf-8")):
            scopes.setdefault(package, scope)
    return [
        _component(name, version, f"pkg:pypi/{name.lower().replace('_', '-')}@{version}", scope)
        for (name, version), scope in sorted(scopes.items())
    ]


def _jar_components() -> list[dict[str, Any]]:
    jars = {_purl(each): each for each in read_lock() if each.folder in SHIPPED}
    return [
        {
            **_component(each.artifact, each.version, purl, "optional"),
            "group": each.group,
            "hashes": [{"alg": "SHA-256", "content": each.sha256}],
        }
        for purl, each in sorted(jars.items())
    ]


def _script_component() -> dict[str, Any]:
    """Return the one file of somebody else that is kept in this repository."""
    purl = f"pkg:npm/htmx.org@{HTMX_VERSION}"
    hashes = [{"alg": "SHA-256", "content": HTMX_SHA256}]
    return {**_component("htmx.org", HTMX_VERSION, purl, "required"), "hashes": hashes}


def _purl(jar: LockedArtifact) -> str:
    return f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}"


def _component(name: str, version: str, purl: str, scope: str) -> dict[str, Any]:
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "scope": scope,
        "purl": purl,
    }


if __name__ == "__main__":
    sys.stdout.write(bill_of_materials(sys.argv[1]))
