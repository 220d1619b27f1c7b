package outbox.client;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;

/**
 * Sends messages that are published if and only if their local transaction commits: prepare, local
 * transaction, end, always in that order. All threads share one producer, and their concurrent calls
 * share requests.
 */
public final class TransactionProducer implements AutoCloseable {
  private static final String PATH = "/v1/half-messages";
  private static final Duration CONNECT = Duration.ofSeconds(2);
  private static final Duration TIMEOUT = Duration.ofSeconds(10);
  private static final long FIRST_PAUSE_MILLIS = 50;
  private static final long LONGEST_PAUSE_MILLIS = 2000;
  private static final long SHORTEST_ATTEMPT_MILLIS = 50;
  private static final System.Logger LOG = System.getLogger("outbox.client");

  private final String url;
  private final String group;
  private final String apiKey;
  private final Duration timeout;
  private final HttpClient http;
  private final SharedRequests prepares;
  private final SharedRequests ends;

  /** Takes the address of the outbox, and a key, or null where the outbox asks for none. */
  public TransactionProducer(String url, String producerGroup, String apiKey) {
    this(url, producerGroup, apiKey, TIMEOUT, client().build());
  }

  /**
   * Takes a limit for each call with its retries, and {@link #client} with your own settings.
   *
   * @throws IllegalArgumentException for an address or a key that cannot be sent
   */
  public TransactionProducer(
      String url, String producerGroup, String apiKey, Duration timeout, HttpClient http) {
    this.url = url.replaceFirst("/+$", "");
    this.group = Objects.requireNonNull(producerGroup, "the producer group");
    this.apiKey = apiKey;
    this.timeout = timeout;
    this.http = http;
    requestTo(PATH);
    Returning returning = new Returning();
    SharedRequests.Transport transport = (path, body, limit) -> post(path, body, limit, 0);
    this.prepares = new SharedRequests(transport, PATH + "/batch", returning);
    this.ends = new SharedRequests(transport, PATH + "/end-batch", returning);
  }

  /** Begins a client without redirects, which turn a POST into a GET, and without a proxy. */
  public static HttpClient.Builder client() {
    return HttpClient.newBuilder()
        .version(HttpClient.Version.HTTP_1_1)
        .proxy(HttpClient.Builder.NO_PROXY)
        .connectTimeout(CONNECT);
  }

  /** Sends nothing more; a call that waits fails at the end of its time. */
  @Override
  public void close() {
    prepares.close();
    ends.close();
  }

  /**
   * Prepares a message, runs the local transaction in this thread, and ends the message. If the local
   * transaction throws, nothing is ended. If the end does not arrive, the result has no decision, and
   * your transaction stays. In both cases a check decides the message.
   *
   * @param attempts how many messages may be prepared: after a rollback of the first the second has
   *     the transaction id {@code ID/2}. With 1 such an id can never be used again
   * @param waitSeconds how long (up to 30) a COMMIT waits until Kafka has the record
   * @throws OutboxException if the local transaction did not run
   * @throws OutboxException.AlreadyEnded also if the decision contradicts the local transaction
   * @throws X from the local transaction
   */
  public <X extends Exception> EndResult sendInTransaction(
      Message message, int attempts, int waitSeconds, LocalTransaction<X> local) throws X {
    PreparedMessage prepared = prepareFirst(message, attempts);
    Decision decision = Objects.requireNonNullElse(local.run(prepared), Decision.UNKNOWN);
    try {
      return end(prepared.messageId(), decision, null, waitSeconds);
    } catch (OutboxException.AlreadyEnded contradicts) {
      throw contradicts;
    } catch (OutboxException lost) {
      LOG.log(System.Logger.Level.WARNING, "no end of message " + prepared.messageId(), lost);
      return new EndResult(prepared.messageId(), prepared.state(), null, null, null);
    }
  }

  private PreparedMessage prepareFirst(Message message, int attempts) {
    Message next = message;
    for (int attempt = 2; ; attempt++) {
      try {
        return prepare(next);
      } catch (OutboxException.AlreadyEnded ended) {
        if (ended.winner() == Decision.COMMIT || attempt > attempts) {
          throw ended;
        }
      }
      next = message.transactionId(message.transactionId() + "/" + attempt);
    }
  }

  /** Stores a half message. Unless it returns, run no local transaction. Repeating it is safe. */
  public PreparedMessage prepare(Message message) {
    byte[] body = message.prepareOf(group);
    int messages = message.count();
    Answer answer = repeated(timeout, limit -> prepares.exchange(PATH, body, body, messages, limit));
    PreparedMessage prepared = answer.read(201, PreparedMessage.class);
    if (!message.transactionId().equals(prepared.transactionId())) {
      throw new IllegalStateException("the answer belongs to another message");
    }
    return prepared.replayed(answer.replayed());
  }

  /** Decides a message; an end that waits for Kafka is sent alone. Repeating it is safe. */
  public EndResult end(String messageId, Decision decision, String reason, int waitSeconds) {
    ObjectNode members = Answer.JSON.createObjectNode().put("decision", decision.name());
    if (reason != null) {
      members.put("reason", reason);
    }
    String path = PATH + "/" + URLEncoder.encode(messageId, StandardCharsets.UTF_8) + "/end";
    byte[] alone = Answer.bytes(members);
    byte[] item = Answer.bytes(members.put("message_id", messageId));
    Answer answer =
        repeated(
            timeout.plusSeconds(waitSeconds),
            limit ->
                waitSeconds > 0
                    ? post(path, alone, limit, waitSeconds)
                    : ends.exchange(path, alone, item, 1, limit));
    return answer.read(200, EndResult.class);
  }

  /** Repeats a request while its result is uncertain and the time allows it. */
  private static Answer repeated(
      Duration budget, Function<Duration, CompletableFuture<Answer>> attempt) {
    long deadline = System.nanoTime() + budget.toNanos();
    long ceiling = FIRST_PAUSE_MILLIS;
    try {
      while (true) {
        long pause = ThreadLocalRandom.current().nextLong(ceiling) + SHORTEST_ATTEMPT_MILLIS;
        long share = Math.min(millisUntil(deadline), budget.toMillis() / 2);
        long limit = Math.max(share, SHORTEST_ATTEMPT_MILLIS);
        CompletableFuture<Answer> call = attempt.apply(Duration.ofMillis(limit));
        try {
          Answer answer = call.get(limit, TimeUnit.MILLISECONDS);
          pause = Math.max(pause, 1000 * answer.retryAfterSeconds());
          if (!answer.isRetryable() || pause > millisUntil(deadline)) {
            return answer;
          }
        } catch (ExecutionException | TimeoutException none) {
          call.cancel(false); // if it still waits, it is not sent
          if (pause > millisUntil(deadline)) {
            throw new OutboxException("the outbox does not answer", none, true);
          }
        }
        Thread.sleep(pause);
        ceiling = Math.min(2 * ceiling, LONGEST_PAUSE_MILLIS);
      }
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new OutboxException("the thread was interrupted", stopped, true);
    }
  }

  private static long millisUntil(long deadline) {
    return TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
  }

  private HttpRequest.Builder requestTo(String path) {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(url + path)).header("content-type", "application/json");
    return apiKey == null ? request : request.header("authorization", "Bearer " + apiKey);
  }

  private CompletableFuture<Answer> post(String path, byte[] body, Duration limit, int wait) {
    HttpRequest.Builder request =
        requestTo(path).timeout(limit).POST(BodyPublishers.ofByteArray(body));
    if (wait > 0) {
      request.header("prefer", "wait=" + wait);
    }
    return http.sendAsync(request.build(), BodyHandlers.ofByteArray())
        .orTimeout(limit.toMillis(), TimeUnit.MILLISECONDS)
        .thenApply(Answer::of);
  }
}
