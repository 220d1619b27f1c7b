"""Every line of docs/rest.md, typed in its order, against an installation that asks for keys."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from outbox.settings.environment import process_environment
from tests.e2e.fixtures_service import Service, outbox_dev
from tests.fixtures_paths import PROJECT

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka, pytest.mark.deep]

PAGE = (PROJECT / "docs" / "rest.md").read_text("utf-8")
KEY, REGISTER, PREPARE, SEVERAL, END, BATCH = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """An installation that answers only callers with a key."""
    folder = tmp_path_factory.mktemp("reader")
    with outbox_dev(folder / ".outbox-dev", options=["--auth", "keys"]) as running:
        yield running


def typed(lines: str, folder: Path, names: Mapping[str, str]) -> str:
    """Type lines of the page into a shell; return what they print."""
    path = f"{Path(sys.executable).parent}:{process_environment()['PATH']}"
    done = subprocess.run(
        ["bash", "-euc", lines],
        cwd=folder,
        env={**process_environment(), **names, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def parted(answer: str) -> tuple[int, str, dict[str, Any]]:
    """Return status, head and document of an answer that curl shows with its head."""
    head, _, body = answer.replace("\r\n", "\n").partition("\n\n")
    return int(head.split()[1]), head.lower(), json.loads(body)


def test_the_page_is_a_session_that_works(guarded: Service) -> None:
    folder = guarded.data_dir.parent
    facts = guarded.facts()
    names = {"OUTBOX_API_URL": facts["api_url"], "OUTBOX_API_KEY": facts["api_key"]}
    assert parted(typed(PREPARE, folder, {**names, "KEY": "none"}))[0] == 401

    registered = json.loads(typed(REGISTER, folder, names))
    assert registered["check_secret"].startswith("whsec_")
    names["KEY"] = json.loads(typed(KEY, folder, names))["api_key"]

    status, head, prepared = parted(typed(PREPARE, folder, names))
    assert (status, prepared["state"]) == (201, "PREPARED")
    assert "idempotency-replayed" not in head
    status, head, again = parted(typed(PREPARE, folder, names))
    assert (status, again["message_id"]) == (201, prepared["message_id"])
    assert "idempotency-replayed: true" in head

    ended = json.loads(typed(END, folder, {**names, "ID": prepared["message_id"]}))
    assert (ended["state"], ended["publication"]["topic"]) == ("PUBLISHED", "invoices.issued")
    status, _, refused = parted(typed(PREPARE, folder, names))
    assert (status, refused["code"]) == (409, "already-ended")
    assert refused["winning_decision"] == "COMMIT"

    status, _, several = parted(typed(SEVERAL, folder, names))
    assert (status, len(several["message_ids"])) == (201, 2)
    ended = json.loads(typed(END, folder, {**names, "ID": several["message_id"]}))
    assert ended["state"] == "PUBLISHED"

    items = json.loads(typed(BATCH, folder, names))["items"]
    assert [each["status"] for each in items] == [201, 201]
