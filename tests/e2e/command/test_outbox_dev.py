"""`outbox dev`: its files, its behaviour after kills, its exit. They run last of their folder."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.e2e.fixtures_command import outbox
from tests.e2e.fixtures_service import FOR_OTHERS, Service, alive, outbox_dev
from tests.fixtures_waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.kafka]

UNREACHABLE_URL = "http://127.0.0.1:1024/check"


@pytest.fixture(scope="module")
def revived(service: Service) -> Iterator[tuple[Service, str, str]]:
    """Kill a supervisor and start another on its data; yield it, and an address and a message of
    the first. No other test can use the shared service afterwards.
    """
    url, pids = service.facts()["api_url"], service.facts()["pids"]
    kept = service.prepare(service.group(UNREACHABLE_URL), service.new_topic())
    service.process.kill()
    service.process.wait()
    wait_for(lambda: not any(alive(pid) for pid in pids.values()))
    (service.data_dir / "dev.json").unlink()  # stale: its writer had no time to remove it
    with outbox_dev(service.data_dir) as again:
        yield again, url, kept


def test_each_program_has_a_role_of_its_own_that_is_no_superuser(service: Service) -> None:
    roles = dict(
        service.rows(
            "SELECT DISTINCT usename, rolsuper FROM pg_stat_activity"
            " JOIN pg_roles ON rolname = usename WHERE starts_with(application_name, 'outbox-')"
        )
    )
    assert roles == {"outbox_api": False, "outbox_checker": False}


def test_what_the_user_has_set_for_others_reaches_no_program_and_no_command(
    service: Service,
) -> None:
    for name, pid in service.facts()["pids"].items():
        started_with = Path(f"/proc/{pid}/environ").read_text().split("\0")
        assert not {each.partition("=")[0] for each in started_with} & {*FOR_OTHERS}, name
    there = ("env", "-C", str(service.data_dir.parent))
    ended = outbox("-o", "json", "doctor", prefix=there, **FOR_OTHERS)
    found = {each["check"]: each["verdict"] for each in ended.json()}
    assert (found["migrations"], found["kafka"], ended.err) == ("ok", "ok", "")


def test_dev_json_has_the_addresses_and_only_its_owner_can_read_it(service: Service) -> None:
    facts = service.facts()
    assert set(facts) == {
        "api_url",
        "kafka_bootstrap_servers",
        "database_url",
        "pids",
        "api_key",
        "version",
    }
    assert set(facts["pids"]) == {"postgres", "kafka", "api", "checker"}
    assert all(alive(pid) for pid in facts["pids"].values())
    assert (service.data_dir / "dev.json").stat().st_mode & 0o777 == 0o600
    assert service.http.get("/readyz").status_code == 200


def test_a_killed_child_is_started_again_and_the_work_goes_on(service: Service) -> None:
    group, topic = service.group(UNREACHABLE_URL), service.new_topic()
    service.end(service.prepare(group, topic), "COMMIT", wait=20)
    before = service.facts()["pids"]["postgres"]
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: service.facts()["pids"]["postgres"] != before)
    wait_for(lambda: _ready(service))
    message_id = service.prepare(group, topic)
    service.end(message_id, "COMMIT")
    service.wait_state(message_id, "PUBLISHED", seconds=90)


def test_after_a_kill_of_the_supervisor_nothing_is_left_and_all_data_is(
    revived: tuple[Service, str, str],
) -> None:
    service, url, kept = revived
    assert service.facts()["api_url"] == url
    assert service.get(kept)["state"] == "PREPARED"


def test_it_stops_cleanly_and_leaves_no_process(revived: tuple[Service, str, str]) -> None:
    """At Ctrl-C; ``outbox_dev`` looks at every stop by SIGTERM."""
    service, _, _ = revived
    pids = service.facts()["pids"]
    service.process.send_signal(signal.SIGINT)
    assert service.process.wait(timeout=60) == 130
    assert not (service.data_dir / "dev.json").exists()
    assert not any(alive(pid) for pid in pids.values())


def _ready(service: Service) -> bool:
    try:
        return service.http.get("/readyz").status_code == 200
    except httpx2.TransportError:
        return False
