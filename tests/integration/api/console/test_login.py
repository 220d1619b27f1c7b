"""Who may see the console, and what a browser keeps."""

from __future__ import annotations

import re

import pytest

from outbox.access import Scope
from outbox.postgres.sessions.connections import Pool
from tests.integration.api.console.fixtures_console import Page, browsing, key_text, logged_in
from tests.integration.api.fixtures_keys import guarded, token
from tests.integration.api.fixtures_service import Service

pytestmark = pytest.mark.postgres

OPERATOR = "AdaOfTheNightShift"
"""Too long to be in sealed bytes by chance."""


async def test_a_stranger_is_sent_to_the_login_and_from_there_to_the_page(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service, browsing(service) as browser:
        key = key_text(await token(pool, Scope.MESSAGES_READ))
        for path in ("/ui", "/ui/", "/ui/export", "/ui/messages/x", "/ui/nothing"):
            assert (await browser.get(path)).path.startswith("/ui/login?next=%2Fui"), path
        page = await browser.log_in(key, "/ui/?q=state:parked")
        assert (page.status, page.path) == (200, "/ui/?q=state:parked")
        assert "Parked" in page.text


async def test_a_form_whose_session_is_over_leads_through_the_login_back_to_its_page(
    database_url: str, pool: Pool, subtests: pytest.Subtests
) -> None:
    async with guarded(database_url) as service, browsing(service) as browser:
        key = key_text(await token(pool, Scope.ADMIN))
        host = "http://localhost"
        for form, referrer, page in (
            ("/ui/held/x", f"{host}/ui/publishing?cursor=c", "/ui/publishing?cursor=c"),
            (
                "/ui/messages/x/recheck",
                f"{host}/ui/messages/x?payload=1",
                "/ui/messages/x?payload=1",
            ),
            ("/ui/groups/x/test", f"{host}/ui/groups/x/simulate", "/ui/groups/x"),
            ("/ui/bulk-actions", f"{host}/ui/bulk-actions", "/ui/"),
            ("/ui/messages/x/recheck", f"{host}/ui/?q=tag:a%26b", "/ui/?q=tag:a%26b"),
            (
                "/ui/bulk-actions",
                f"{host}/ui/bulk-actions/plan?q=tag:a%26b&action=recheck",
                "/ui/bulk-actions/plan?q=tag:a%26b&action=recheck",
            ),
            ("/ui/keys/x/revoke", f"{host}/ui", "/ui/"),
            ("/ui/held/x", f"{host}/ui/publishing?done=dropped", "/ui/publishing"),
            (
                "/ui/held/x",
                f"{host}/ui/publishing?done=dropped&cursor=c",
                "/ui/publishing?cursor=c",
            ),
            ("/ui/keys/x/revoke", None, "/ui/"),
            ("/ui/keys/x/revoke", f"{host}/ui/nothing/here", "/ui/"),
            ("/ui/keys/x/revoke", f"{host}/v1/api-keys", "/ui/"),
            ("/ui/keys/x/revoke", f"{host}/uikeys", "/ui/"),
            ("/ui/keys/x/revoke", "http://evil.example/ui/keys", "/ui/"),
            ("/ui/keys/x/revoke", f"{host}:1/ui/keys", "/ui/"),
            ("/ui/keys/x/revoke", "http://[evil/ui/keys", "/ui/"),
            ("/ui/keys/x/revoke", f"{host}/ui/../../keys", "/ui/"),
            ("/ui/keys/x/revoke", f"{host}/ui//evil.example", "/ui/"),
        ):
            with subtests.test(f"{form} {referrer}"):
                browser.client.cookies.clear()
                headers = {"referer": referrer} if referrer else {}
                body = {"csrf": "x", "reason": "r" * 20_000}
                answer = await browser.client.post(
                    form, data=body, headers=headers, follow_redirects=True
                )
                login = Page(answer)
                assert login.path.startswith("/ui/login"), login.text
                assert "Your session is over, and nothing was done" in login.text
                assert "typed or selected is lost" in login.text
                sent = login.forms()["/ui/login"] | {"key": key, "operator": "Ada"}
                back = await browser.client.post("/ui/login", data=sent)
                assert (back.status_code, back.headers["location"]) == (303, page)


async def test_a_session_that_ends_on_the_page_of_a_dry_run_leads_back_to_the_dry_run(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service, browsing(service) as browser:
        key = key_text(await token(pool, Scope.ADMIN))
        await browser.log_in(key)
        found = await browser.get("/ui/?q=state:parked tag:a%26b")
        plan = await browser.send(found, "/ui/bulk-actions/plan", action="recheck")
        assert plan.status == 200
        browser.client.cookies.clear()
        headers = {"referer": str(plan.answer.url)}
        ended = await browser.client.post("/ui/bulk-actions", headers=headers)
        login = Page(await browser.client.get(ended.headers["location"]))
        sent = login.forms()["/ui/login"] | {"key": key, "operator": "Ada"}
        back = Page(await browser.client.post("/ui/login", data=sent, follow_redirects=True))
        assert back.path == plan.path
        assert "<code>state:parked tag:a&amp;b</code>" in back.html


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
            assert {"httponly", "samesite=strict", "path=/ui"} <= attributes
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


async def test_a_wrong_key_keeps_the_name_and_a_good_session_needs_no_second_login(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service, browsing(service) as browser:
        refused = await browser.log_in("nonsense", "/ui/?q=state:parked", OPERATOR)
        fields = refused.forms()["/ui/login"]
        assert (fields["operator"], fields["next"]) == (OPERATOR, "/?q=state:parked")
        key = key_text(await token(pool, Scope.MESSAGES_READ))
        await browser.send(refused, "/ui/login", key=key)
        back = await browser.get("/ui/login?next=%2Fui%2Fparked")
        assert back.path == "/ui/parked"


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


async def test_a_cookie_that_was_changed_is_no_session(database_url: str, pool: Pool) -> None:
    async with logged_in(database_url, pool, Scope.MESSAGES_READ) as (_, browser):
        name, value = next(iter(browser.client.cookies.items()))
        changed = value[:40] + ("A" if value[40] != "A" else "B") + value[41:]
        for cookie in (changed, value[:-4], "x" * 5000, "\u00e4", ""):
            headers = [(b"cookie", f"{name}={cookie}".encode("latin-1"))]
            browser.client.cookies.clear()
            answer = await browser.client.get("/ui/", headers=headers)
            assert (answer.status_code, answer.headers["location"][:9]) == (303, "/ui/login")


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


async def test_an_address_from_another_site_asks_again_with_its_session(
    database_url: str, pool: Pool
) -> None:
    session = logged_in(database_url, pool, Scope.MESSAGES_READ)
    async with session as (service, _), browsing(service) as fresh:
        page = await fresh.get('/ui/?q="><script>', **{"sec-fetch-site": "cross-site"})
        assert page.status == 200
        assert 'content="0;url=/ui/?q=' in page.html
        assert "<script>" not in page.html
        again = await fresh.get("/ui/?q=x", **{"sec-fetch-site": "same-origin"})
        assert "/ui/login" in again.path


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
        for path in ("/ui/", "/ui/login", "/ui/nothing", "/ui/?q=age:x"):
            page = await browser.get(path)
            policy = page.answer.headers["content-security-policy"]
            assert "default-src 'self'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert page.answer.headers["cache-control"] == "no-store"
            assert page.answer.headers["x-content-type-options"] == "nosniff"
            assert not re.search(r"<script(?![^>]*\bsrc=)|\bon\w+=|\bstyle=|<style", page.html)


async def test_files_are_kept_only_under_the_hash_of_their_content(
    database_url: str, pool: Pool
) -> None:
    async with guarded(database_url) as service, browsing(service) as browser:
        page = await browser.get("/ui/")
        addresses = re.findall(r'(?:href|src)="(/ui/static/[^"]+)"', page.html)
        assert len(addresses) == 4
        for address in addresses:
            answer = await browser.client.get(address)
            assert answer.status_code == 200
            assert "immutable" in answer.headers["cache-control"]
            bare = await browser.client.get(address.partition("?")[0])
            assert bare.headers["cache-control"] == "no-cache"
        for name in ("../console.py", "%2e%2e/console.py", "htmx-LICENSE.txt", "nothing.css"):
            assert (await browser.client.get(f"/ui/static/{name}")).status_code in (303, 404)


async def test_the_console_can_be_moved_and_switched_off(database_url: str) -> None:
    moved = guarded(database_url, ui_prefix="/ops/outbox")
    async with moved as service, browsing(service) as browser:
        page = await browser.get("/ops/outbox/")
        assert "/ops/outbox/login" in page.forms()
        assert (await browser.client.get("/ui/")).status_code == 401
    async with guarded(database_url, ui_enabled=False) as service:
        assert (await service.client.get("/ui/")).status_code == 401


async def test_a_login_has_a_small_body(database_url: str) -> None:
    async with guarded(database_url) as service, browsing(service) as browser:
        answer = await browser.client.post("/ui/login", content=b"key=" + b"x" * 5000)
        assert answer.status_code == 413
        assert (await browser.get("/ui/login")).status == 200
