"""axe-core finds no fault in a page, in light and dark, on a telephone, nor after its forms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.fixtures_npm import install_locked
from tests.integration.api.console.browser.fixtures_chromium import PROGRAM
from tests.integration.api.console.browser.fixtures_desk import Desk
from tests.integration.api.console.browser.fixtures_trouble import let_tasks_beat, make_trouble

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.deep,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(PROGRAM is None, reason="neither chromium nor google-chrome is installed"),
]
LOCK: Final = Path(__file__).with_name("axe_core")
PATHS: Final = (
    "/",
    "/messages?producer_group=billing&tag=shown",
    "/find?id=nothing-has-this",
    "/messages?state=PREPARED&prepared_to=x",
    "/messages/{message}?payload=1",
    "/messages",
    "/parked",
    "/groups",
    "/groups/billing",
    "/publishing",
    "/reconciliations",
    "/audit",
    "/keys",
    "/system",
    "/nothing",
)
STATES: Final[Mapping[str, tuple[str, str]]] = {
    "tested": ("/groups/billing", "form[action$='/test'] button"),
    "simulated": ("/groups/billing", "form[action$='/simulate'] button"),
    "dry run": ("/parked", "td button"),
}
"""Pages that answer a form: where it is, and its button."""
RUN: Final = """
axe.run(document, {resultTypes: ['violations']}).then(found => { window.faults =
    JSON.stringify(found.violations.map(
        each => [each.id, each.help, each.nodes.map(at => at.html)]));
}); 0
"""


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install axe-core as locked; return its script."""
    packages = install_locked(LOCK, tmp_path_factory.mktemp("axe"))
    return (packages / "axe-core/axe.min.js").read_text("utf-8")


async def faults(desk: Desk, axe: str) -> list[Any]:
    """Return what axe says against the page, light and dark, wide and narrow."""
    found: list[Any] = []
    for theme, width in (("light", 1280), ("dark", 390)):
        await desk.tab.resize(width)
        features = [{"name": "prefers-color-scheme", "value": theme}]
        await desk.tab.command("Emulation.setEmulatedMedia", features=features)
        await desk.tab.js(f"{axe}; window.faults = undefined; {RUN}")
        await desk.tab.until("window.faults !== undefined")
        found += [[theme, *each] for each in json.loads(await desk.tab.js("window.faults"))]
    return found


async def test_no_page_has_a_fault(
    desk: Desk, module_database: str, axe: str, subtests: pytest.Subtests
) -> None:
    shown = await make_trouble(desk)
    let_tasks_beat(module_database)
    for path in PATHS:
        with subtests.test(path):
            await desk.open(path.format(message=shown))
            assert await faults(desk, axe) == []
    for name, (path, button) in STATES.items():
        with subtests.test(name):
            await desk.open(path)
            await desk.tab.click(button)
            assert await faults(desk, axe) == []
    with subtests.test("action"):
        await desk.tab.fill("#bulk-reason", "the endpoint is back")
        await desk.tab.click("main button.primary")
        assert await faults(desk, axe) == []
