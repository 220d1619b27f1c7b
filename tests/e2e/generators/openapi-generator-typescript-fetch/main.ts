import { Configuration, HalfMessagesApi } from "./client";

declare const process: { env: Record<string, string> };
const { OUTBOX_API_URL, PRODUCER_GROUP, TOPIC } = process.env;

async function main() {
  const messages = new HalfMessagesApi(new Configuration({ basePath: OUTBOX_API_URL }));
  const prepareRequest = { producerGroup: PRODUCER_GROUP, topic: TOPIC, value: "invoice" };
  const { messageId } = await messages.prepareHalfMessage({ prepareRequest });
  await messages.endHalfMessage({ messageId, endRequest: { decision: "COMMIT" }, prefer: "wait=30" });
  const got = await messages.getHalfMessage({ messageId });
  console.log(messageId, got.state, got.publication!.offset);
}

main();
