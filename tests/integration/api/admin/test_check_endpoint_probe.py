"""POST /v1/producer-groups/{producer_group}/test sends a signed and a forged check only."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from outbox.http_checks.endpoint import UNTRUSTED
from outbox.postgres.sessions.connections import Pool
from tests.fixtures_certificates import CertificateAuthority
from tests.integration.api.fixtures_rows import stored
from tests.integration.api.fixtures_service import GROUPS, Service
from tests.integration.checker.fixtures_producer import (
    Check,
    Producer,
    says,
    status,
    verdict,
)

pytestmark = pytest.mark.postgres


class Verifying:
    """An endpoint that answers requests signed by its secret and refuses all others."""

    def __init__(self) -> None:
        self.secret = ""
        self.accepted: list[Check] = []

    async def answer(self, request: web.Request, check: Check) -> web.StreamResponse:
        """Answer one check."""
        try:
            Webhook(self.secret).verify(await request.read(), dict(request.headers))
        except WebhookVerificationError:
            return web.Response(status=401)
        self.accepted.append(check)
        return verdict(check, "UNKNOWN")


async def test_an_endpoint_that_verifies_passes_and_decides_nothing(
    bare_service: Service, pool: Pool
) -> None:
    endpoint = Verifying()
    async with Producer(endpoint.answer) as producer:
        made = await bare_service.put_group(check_url=producer.url)
        endpoint.secret = made.json()["check_secret"]
        answer = await bare_service.client.post(f"{GROUPS}/billing/test")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found.pop("latency_ms") >= 0
    assert found == {
        "reachable": True,
        "signature_accepted": True,
        "forgery_refused": True,
        "outcome": "unknown",
        "http_status": 200,
    }
    assert (len(producer.asked), len(endpoint.accepted)) == (2, 1)
    assert producer.asked[0]["message_id"] == producer.asked[1]["message_id"]
    assert await stored(pool) == (0, 0, 0, 0)


async def test_a_certificate_of_an_own_authority_is_named_as_the_reason(
    bare_service: Service, tmp_path: Path
) -> None:
    certificate = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.load_cert_chain(*CertificateAuthority(tmp_path).sign("127.0.0.1"))
    async with Producer(says("COMMIT"), certificate=certificate) as producer:
        await bare_service.put_group(check_url=producer.url)
        tested = await bare_service.client.post(f"{GROUPS}/billing/test")
        simulated = await bare_service.client.post(f"{GROUPS}/billing/simulate", json={})
    assert (tested.json()["reachable"], tested.json()["outcome"]) == (False, UNTRUSTED)
    assert UNTRUSTED in simulated.json()["cases"][0]["why"]


async def test_an_endpoint_that_accepts_or_refuses_every_signature_is_reported(
    bare_service: Service, subtests: pytest.Subtests
) -> None:
    for name, producer, expected in (
        ("accepts any", Producer(says("COMMIT")), (True, True, False, 200)),
        ("refuses all", Producer(status(401)), (True, False, True, 401)),
        ("is broken", Producer(status(500, "a secret")), (True, False, False, 500)),
    ):
        with subtests.test(name):
            async with producer:
                await bare_service.put_group(name.split()[-1], check_url=producer.url)
                answer = await bare_service.client.post(f"{GROUPS}/{name.split()[-1]}/test")
            found = answer.json()
            assert expected == (
                found["reachable"],
                found["signature_accepted"],
                found["forgery_refused"],
                found["http_status"],
            )
            assert "secret" not in answer.text
