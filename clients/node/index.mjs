/** Sends messages that are in Kafka if, and only if, a local transaction committed. */
export { Barrier, mysql, postgresql } from "./barrier.mjs";
export { CheckEndpoint } from "./endpoint.mjs";
export { OutboxError } from "./error.mjs";
export { Producer } from "./producer.mjs";
