import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";

export type Decision = "COMMIT" | "ROLLBACK" | "UNKNOWN";

export interface Message {
  topic: string;
  key?: string | Uint8Array | null;
  /** null is a tombstone. */
  value: string | Uint8Array | null;
  headers?: Record<string, string | Uint8Array | null>;
  contentType?: string;
  /** Your own name for the local transaction; without it a random one. */
  transactionId?: string;
  partition?: number;
  checkImmunitySeconds?: number;
  tags?: string[];
}

export class Producer {
  constructor(options: { url: string; group: string; apiKey?: string; timeoutMs?: number });
  send<Result>(message: Message | Message[], local: (messageId: string) => Promise<Result>): Promise<Result>;
  prepare(message: Message | Message[]): Promise<string>;
  end(messageId: string, decision: Decision): Promise<void>;
}

/** A check as the service sends it: docs/check-endpoint.md. */
export interface Check {
  message_id: string;
  transaction_id: string | null;
  producer_group: string;
  prepared_at: string;
  reply_by: string;
  [member: string]: unknown;
}

export class CheckEndpoint {
  constructor(options: { group: string; secret: string; decide: (check: Check) => Promise<Decision> });
  handler: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  answer(headers: IncomingHttpHeaders, body: Buffer): Promise<{ status: number; body?: string }>;
}

interface Database<Client> {
  connect(): Promise<Client>;
}
/** A `Pool` of the package `pg`. */
export function postgresql<Client>(pool: { connect(): Promise<Client> }): Database<Client>;
/** A pool of `mysql2/promise`. */
export function mysql<Client>(pool: { getConnection(): Promise<Client> }): Database<Client>;

export class Barrier<Client> {
  constructor(database: Database<Client>, group: string);
  createTable(): Promise<void>;
  run<Result>(messageId: string, work: (client: Client) => Promise<Result>): Promise<Result>;
  record(client: Client, messageId: string): Promise<void>;
  check(check: Check): Promise<Decision>;
  purge(days: number): Promise<number>;
}

export class OutboxError extends Error {
  code: "no-answer" | "refused" | "committed" | "rolled-back" | "not-ended" | "fenced";
}
