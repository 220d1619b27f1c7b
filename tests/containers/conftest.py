"""One engine and one stack for all tests of the containers; they are dear to start."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping

import pytest

from tests.containers.fixtures_engine import NoEngine, container_engine, make_images
from tests.containers.fixtures_page import commands, typed
from tests.containers.fixtures_stack import Stack, stack_of_a_copy
from tests.containers.fixtures_watch import Watch

COLD_SECONDS = 5400
"""For the first test where no image has been built yet; each build and start has its own bound."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let whichever test is the first wait for all images."""
    for item in items:
        if "tests/containers/" in item.nodeid:
            item.add_marker(pytest.mark.timeout(COLD_SECONDS))


@pytest.fixture(scope="session")
def engine() -> Iterator[Mapping[str, str]]:
    """Yield the environment of a client of a container engine; skip where there can be none.

    SIGTERM, by which .ci/run ends tests that take too long, deletes the stack as Ctrl-C does.
    """
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with container_engine() as environment:
            yield environment
    except NoEngine as error:
        pytest.skip(f"no container engine: {error}")
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def images_of_profiles(engine: Mapping[str, str]) -> None:
    """Build the stand-in of what only a profile has."""
    make_images(engine, "prometheus")


@pytest.fixture(scope="session")
def stack(engine: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Yield the stack after `make up`, with its first key."""
    with stack_of_a_copy(tmp_path_factory.mktemp("stack") / "outbox", engine) as made:
        up, create_key = commands("Start")[0].splitlines()
        assert up == "make up"
        assert "run: make up" in made.compose("up", "--detach", check=False)
        made.run("make", "down")
        made.up()
        made.admin_key = json.loads(typed(made, create_key))["api_key"]
        yield made


@pytest.fixture(scope="session")
def watch(stack: Stack, images_of_profiles: None) -> Watch:
    """Let Prometheus watch the stack from now on; its volume keeps what it saw."""
    stack.compose("up", "--detach", "--wait", "prometheus")
    url = f"http://127.0.0.1:{stack.ports['PROMETHEUS_PORT']}/api/v1/query"
    return Watch(url, Watch.now(url))
