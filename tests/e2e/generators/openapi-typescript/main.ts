import createClient from "openapi-fetch";
import type { paths } from "./client";

declare const process: { env: Record<string, string> };
const { OUTBOX_API_URL, PRODUCER_GROUP, TOPIC } = process.env;

async function main() {
  const client = createClient<paths>({ baseUrl: OUTBOX_API_URL });
  const prepared = await client.POST("/v1/half-messages", {
    body: { producer_group: PRODUCER_GROUP, topic: TOPIC, value: "invoice" },
  });
  const path = { message_id: prepared.data!.message_id };
  await client.POST("/v1/half-messages/{message_id}/end", {
    params: { path, header: { Prefer: "wait=30" } },
    body: { decision: "COMMIT" },
  });
  const got = await client.GET("/v1/half-messages/{message_id}", { params: { path } });
  console.log(path.message_id, got.data!.state, got.data!.publication!.offset);
}

main();
