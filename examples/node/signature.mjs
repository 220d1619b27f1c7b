import { createHmac, timingSafeEqual } from "node:crypto";

/** The largest difference, in seconds, between a check's timestamp and our clock. */
export const WINDOW = 300;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Decode a check secret: whsec_ and the base64 of the key. */
export function keyOf(secret) {
  const text = secret.startsWith("whsec_") ? secret.slice("whsec_".length) : "";
  if (text === "" || !BASE64.test(text)) {
    throw new Error("a check secret is whsec_ and base64, and not empty");
  }
  return Buffer.from(text, "base64");
}

/**
 * Return true if one of the signatures is valid: HMAC-SHA256 over id.timestamp.body, where `body` is
 * the raw bytes. During a rotation the header has one signature per secret.
 */
export function verify(key, id, timestamp, signatures, body, now) {
  if (!id || !/^\d{1,12}$/.test(timestamp ?? "") || Math.abs(Number(timestamp) - now) > WINDOW) {
    return false;
  }
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  return (signatures ?? "").split(" ").some((signature) => fits(signature, expected));
}

function fits(signature, expected) {
  const [version, text = ""] = signature.split(",", 2);
  if (version !== "v1" || !BASE64.test(text)) return false;
  const given = Buffer.from(text, "base64");
  return given.length === expected.length && timingSafeEqual(given, expected);
}
