"""Who may see the console, and what a browser keeps."""

from __future__ import annotations

import re

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import browsing, key_text, logged_in
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_service import Service

pytestmark = pytest.mark.postgres

OPERATOR = "AdaOfTheNightShift"
"""Too long to be in sealed bytes by chance."""


async def test_a_browser_that_knows_only_the_address_comes_to_the_console(
    service: Service,
) -> None:
    shown = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    came = await service.client.get("/", headers=shown, follow_redirects=True)
    assert (came.status_code, came.url.path.rstrip("/")) == (200, "/ui")
    assert (await service.client.get("/")).status_code == 404


async def test_a_stranger_is_sent_to_the_login_and_from_there_to_the_page(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service, browsing(service) as browser:
        key = key_text(await token(pool, Scope.MESSAGES_READ))
        for path in ("/ui", "/ui/", "/ui/export", "/ui/messages/x", "/ui/nothing"):
            assert (await browser.get(path)).path.startswith("/ui/login?next=%2Fui"), path
        page = await browser.log_in(key, "/ui/messages?state=PARKED")
        assert (page.status, page.path) == (200, "/ui/messages?state=PARKED")
        assert "Parked" in page.text


async def test_the_cookie_is_closed_to_scripts_and_other_sites_and_does_not_show_the_key(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service, browsing(service) as browser:
        key = key_text(await token(pool, Scope.MESSAGES_READ))
        login = await browser.get("/ui/")
        form = login.forms()["/ui/login"] | {"key": key, "operator": OPERATOR}
        [before] = browser.client.cookies.items()
        browser.client.cookies.clear()
        for host, secure in (("localhost", False), ("127.0.0.1:8080", False), ("o.example", True)):
            headers = {"host": host, "cookie": "=".join(before)}
            answer = await browser.client.post("/ui/login", data=form, headers=headers)
            browser.client.cookies.clear()
            assert answer.status_code == 303
            cookie = answer.headers["set-cookie"]
            attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
            assert {"httponly", "samesite=lax", "path=/ui"} <= attributes
            assert ("secure" in attributes) is secure
            assert all(part not in cookie for part in (key, key.split("_")[2], OPERATOR))


async def test_a_wrong_key_is_refused_without_saying_why_and_is_not_shown(
    database_url: str, pool: Pool, subtests: pytest.Subtests
) -> None:
    expired = key_text(await token(pool, Scope.ADMIN, lives=-1))
    async with guarded(database_url) as service, browsing(service) as browser:
        for key in (expired, "nonsense", "obx_" + "0" * 80, "\u00fcber", '"><script>'):
            with subtests.test(key):
                page = await browser.log_in(key)
                assert (page.status, page.path) == (401, "/ui/login")
                assert "This key is not valid" in page.text
                assert key not in page.html
                assert "/ui/login" in (await browser.get("/ui/")).path


async def test_the_login_goes_on_to_no_other_host(database_url: str, pool: Pool) -> None:
    async with guarded(database_url) as service, browsing(service) as browser:
        key = key_text(await token(pool, Scope.MESSAGES_READ))
        for following in ("//evil.example", "https://evil.example", "/ui//evil.example", "/\\evil"):
            login = await browser.get("/ui/login")
            form = login.forms()["/ui/login"] | {"key": key, "operator": "A", "next": following}
            answer = await browser.client.post("/ui/login", data=form)
            assert answer.headers["location"] == "/ui/"
            browser.client.cookies.clear()


async def test_a_revoked_key_ends_its_sessions(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (service, browser):
        assert (await browser.get("/ui/")).path == "/ui/"
        keys = (await service.client.get("/v1/api-keys")).json()["data"]
        [bound] = [key["key_id"] for key in keys if key["scopes"] == ["messages:read"]]
        assert (await service.client.delete(f"/v1/api-keys/{bound}")).status_code == 204
        assert "/ui/login" in (await browser.get("/ui/")).path


async def test_a_log_out_ends_the_session_of_the_browser(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (_, browser):
        page = await browser.send(await browser.get("/ui/"), "/ui/logout")
        assert "You are logged out." in page.text
        assert "/ui/login" in (await browser.get("/ui/")).path


async def test_a_form_without_the_token_of_its_session_does_nothing(
    database_url: str, pool: Pool, subtests: pytest.Subtests
) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (service, browser):
        message_id = await service.prepared_id()
        action = f"/ui/messages/{message_id}/force-end"
        page = await browser.get(f"/ui/messages/{message_id}")
        good = page.forms()[action] | {"reason": "r", "decision": "ROLLBACK"}
        refused: dict[str, tuple[dict[str, str], dict[str, str], int]] = {
            "no token": ({**good, "csrf": ""}, {}, 403),
            "token of another session": ({**good, "csrf": "x" * 32}, {}, 403),
            "cross-site": (good, {"sec-fetch-site": "cross-site"}, 403),
            "same-site": (good, {"sec-fetch-site": "same-site"}, 403),
            "foreign origin": (good, {"origin": "http://evil.example"}, 403),
            "null origin": (good, {"origin": "null"}, 403),
        }
        for name, (form, headers, status) in refused.items():
            with subtests.test(name):
                answer = await browser.client.post(action, data=form, headers=headers)
                assert answer.status_code == status
                assert "csrf-refused" in answer.text
        for body in (b"{}", b"\xff=1", b"a&" * 3000):
            with subtests.test(str(body[:10])):
                answer = await browser.client.post(
                    action, content=body, headers={"content-type": "application/json"}
                )
                assert answer.status_code == 415
        half = (await service.client.get(f"/v1/half-messages/{message_id}")).json()
        assert half["state"] == "PREPARED"
        own = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
        assert (await browser.client.post(action, data=good, headers=own)).status_code == 303


async def test_without_keys_nobody_logs_in_and_forms_need_their_token(service: Service) -> None:
    message_id = await service.prepared_id()
    async with browsing(service) as browser:
        page = await browser.get(f"/ui/messages/{message_id}")
        assert page.status == 200
        assert "/ui/logout" not in page.forms()
        action = f"/ui/messages/{message_id}/force-end"
        form = page.forms()[action] | {"reason": "r", "decision": "COMMIT"}
        blocked = await browser.client.post(action, data={**form, "csrf": "guess"})
        assert blocked.status_code == 403
        other = await browser.client.get("/ui/", headers={"host": "evil.example"})
        assert (other.status_code, other.json()["code"]) == (403, "csrf-refused")
        cross = await browser.client.get("/ui/", headers={"sec-fetch-site": "cross-site"})
        assert cross.status_code == 403
        assert (await browser.client.post(action, data=form)).status_code == 303


async def test_every_page_confines_the_browser(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.ADMIN) as (_, browser):
        for path in ("/ui/", "/ui/login", "/ui/nothing", "/ui/messages?prepared_to=x"):
            page = await browser.get(path)
            policy = page.answer.headers["content-security-policy"]
            assert "default-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert page.answer.headers["cache-control"] == "no-store"
            assert page.answer.headers["x-content-type-options"] == "nosniff"
            assert not re.search(r"<script(?![^>]*\bsrc=)|\bon\w+=|\bstyle=|<style", page.html)
