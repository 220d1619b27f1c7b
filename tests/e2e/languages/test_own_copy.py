"""docs/clients.md: a copy of an example becomes a service of the reader's own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.fixtures_service import Service
from tests.e2e.languages.fixtures_languages import PLAIN
from tests.fixtures_paths import PROJECT

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

PAGE = (PROJECT / "docs" / "clients.md").read_text("utf-8")
SECTION = PAGE.partition("### Make it your own")[2].partition("\n## ")[0]
(BLOCK,) = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)


def test_the_copy_has_a_group_of_its_own_at_its_own_address(
    service: Service, tmp_path: Path
) -> None:
    readme = (PROJECT / "README.md").read_text("utf-8")
    (json_reader,) = re.findall(r"^json\(\) .*$", readme, re.MULTILINE)
    shown = 'printf %s "$CHECK_SECRET"'
    done = subprocess.run(
        ["bash", "-euc", "\n".join((json_reader, BLOCK, shown))],
        cwd=PROJECT,
        env={**PLAIN, "HOME": str(tmp_path), "OUTBOX_API_URL": str(service.facts()["api_url"])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("whsec_"), done.stderr
    group = service.http.get("/v1/producer-groups/shop").json()
    assert group["check_url"] == "http://127.0.0.1:9001/outbox/check"
    assert (tmp_path / "shop/main.go").is_file()
