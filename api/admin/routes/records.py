"""Records in Kafka: which message one is."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from api.admin.dependencies import MessageReader, ServicesDependency, StrictRoute
from api.admin.models.half_messages import RecordResource
from api.admin.routes.half_messages import find
from api.http.wire_types import TopicText
from outbox.errors import MessageNotFound

router = APIRouter(prefix="/v1/records", tags=["records"], route_class=StrictRoute)

PartitionNumber = Annotated[int, Path(ge=0, le=2**31 - 1)]
Offset = Annotated[int, Path(ge=0, le=2**63 - 1)]


@router.get("/{topic}/{partition}/{offset}")
async def get_record(
    topic: TopicText,
    partition: PartitionNumber,
    offset: Offset,
    caller: MessageReader,
    services: ServicesDependency,
) -> RecordResource:
    """Return the message of a record in Kafka; needs READ on the topic."""
    message_id = await services.stores.message_at(caller.tenant, topic, partition, offset)
    if message_id is None:
        raise MessageNotFound
    found = (await find(services, caller, message_id)).message_id
    return RecordResource(message_id=found, topic=topic, partition=partition, offset=offset)
