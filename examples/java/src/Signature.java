import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** The signature of a check: HMAC-SHA256 over id.timestamp.body, with the raw bytes of the body. */
final class Signature {
  /** The largest difference, in seconds, between a check's timestamp and our clock. */
  static final long WINDOW = 300;

  private final SecretKeySpec key;

  /** Takes a check secret: whsec_ and the base64 of the key. */
  Signature(String secret) {
    if (secret == null || !secret.startsWith("whsec_") || secret.length() == "whsec_".length()) {
      throw new IllegalArgumentException("a check secret is whsec_ and base64, and not empty");
    }
    byte[] decoded = Base64.getDecoder().decode(secret.substring("whsec_".length()));
    key = new SecretKeySpec(decoded, "HmacSHA256");
  }

  /** Returns true if one of the signatures is valid; during a rotation there is one per secret. */
  boolean fits(String id, String timestamp, String signatures, byte[] body, long now)
      throws GeneralSecurityException {
    if (id == null || signatures == null || !isNear(timestamp, now)) {
      return false;
    }
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(key);
    mac.update((id + "." + timestamp + ".").getBytes(StandardCharsets.UTF_8));
    byte[] expected = mac.doFinal(body);
    boolean fits = false;
    for (String signature : signatures.split(" ")) {
      fits |= signature.startsWith("v1,") && isEqual(signature.substring(3), expected);
    }
    return fits;
  }

  private static boolean isNear(String timestamp, long now) {
    return timestamp != null
        && timestamp.matches("\\d{1,12}")
        && Math.abs(Long.parseLong(timestamp) - now) <= WINDOW;
  }

  private static boolean isEqual(String given, byte[] expected) {
    try {
      return MessageDigest.isEqual(Base64.getDecoder().decode(given), expected);
    } catch (IllegalArgumentException noBase64) {
      return false;
    }
  }
}
