"""The HTTP API of the account service: buy, review, and the outbox's check endpoint."""

from typing import Annotated

from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel, Field

from examples.account_service.demo_switches import HEADER, EndLost, fail_after_commit, read_switch
from examples.account_service.purchases import Outcome, Purchase, Purchases
from outbox_client import CheckEndpoint, PrepareFailed, TransactionProducer
from outbox_client.fastapi import check_router


class PurchaseRequest(BaseModel):
    """A purchase that the shop requests."""

    purchase_id: str = Field(min_length=1, max_length=100)
    member: str = Field(min_length=1, max_length=100)
    amount: int = Field(gt=0)


class Review(BaseModel):
    """The decision of the reviewer."""

    approved: bool


class PurchaseAnswer(BaseModel):
    """The result of a purchase; ``pending`` if this process does not know it."""

    purchase_id: str
    outcome: str


def create_app(
    purchases: Purchases,
    producer: TransactionProducer,
    endpoint: CheckEndpoint,
    *,
    demo_switches: bool = False,
) -> FastAPI:
    """Return the application; nothing is opened here."""
    app = FastAPI(title="account service")
    app.include_router(check_router(endpoint))

    @app.post("/purchases")
    def buy(
        request: PurchaseRequest, fail: Annotated[str | None, Header(alias=HEADER)] = None
    ) -> PurchaseAnswer:
        purchase = Purchase(request.purchase_id, request.member, request.amount)
        switch = read_switch(fail, enabled=demo_switches)
        try:
            outcome = purchases.buy(producer, purchase, lambda: fail_after_commit(switch))
        except PrepareFailed as error:
            raise HTTPException(503, "the outbox accepts no messages now") from error
        except EndLost:
            return PurchaseAnswer(purchase_id=purchase.purchase_id, outcome="pending")
        return PurchaseAnswer(purchase_id=purchase.purchase_id, outcome=outcome)

    @app.post("/purchases/{purchase_id}/review")
    def close_review(purchase_id: str, review: Review) -> PurchaseAnswer:
        outcome = purchases.close_review(producer, purchase_id, approved=review.approved)
        if outcome is None:
            raise HTTPException(404, "no such purchase under review")
        return PurchaseAnswer(purchase_id=purchase_id, outcome=outcome)

    @app.get("/livez")
    def livez() -> dict[str, list[Outcome]]:
        return {"outcomes": list(Outcome)}

    return app
