import type { IncomingMessage, ServerResponse } from "node:http";

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

export interface Prepared {
  messageId: string;
  transactionId: string;
  /** The local transaction may have run before. */
  replayed: boolean;
}

export interface Ended {
  messageId: string;
  state: string;
  decision: Decision | null;
}

export class Producer {
  constructor(options: { url: string; group: string; apiKey?: string; timeoutMs?: number });
  send(message: Message | Message[], localTransaction: (prepared: Prepared) => Promise<unknown>): Promise<Ended>;
  prepare(message: Message | Message[]): Promise<Prepared>;
  end(messageId: string, decision: Decision): Promise<Ended>;
}

export interface Check {
  messageId: string;
  transactionId: string | null;
  producerGroup: string;
  topic: string;
  preparedAt: Date;
  replyBy: Date;
}

export type Verdict = Decision | { decision: Decision; reason?: string; retryAfterSeconds?: number };

export class CheckEndpoint {
  constructor(options: { group: string; secret: string; decide: (check: Check) => Promise<Verdict> });
  handler: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  answer(
    headers: Record<string, string | string[] | undefined>,
    body: Uint8Array,
  ): Promise<{ status: number; body: string }>;
}

export interface Database<Client> {
  query(client: Client | null, text: string, values?: unknown[]): Promise<unknown>;
}
/** A `Pool` of the package `pg`. */
export function postgresql<Client>(pool: { connect(): Promise<Client> }): Database<Client>;
/** A pool of `mysql2/promise`. */
export function mysql<Client>(pool: { getConnection(): Promise<Client> }): Database<Client>;

export class Barrier<Client> {
  constructor(database: Database<Client>, group: string);
  createTable(): Promise<void>;
  run<Result>(prepared: Prepared, work: (client: Client) => Promise<Result>): Promise<Result>;
  record(client: Client, messageId: string): Promise<void>;
  check(check: Check): Promise<Decision>;
  purge(days: number): Promise<number>;
}

export class NoAnswerError extends Error {}
export class RefusedError extends Error {
  status: number;
  code?: string;
  winningDecision?: Decision;
}
export class CommittedError extends RefusedError {}
export class EndError extends Error {
  messageId: string;
}
export class FencedError extends Error {}
