package outbox.client;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Concurrent calls of one operation share requests: while two are under way, further calls wait and
 * travel together in the next one. A single call is sent at once.
 *
 * <p>Callers that were answered together come again together, so a request waits for them as long as
 * they keep coming ({@link Returning}).
 */
final class SharedRequests implements AutoCloseable {
  private static final int MESSAGES_ENOUGH = 901; // with an item of 100 messages more 1000
  private static final int BYTES_ENOUGH = 6 * 1024 * 1024; // with one item more below 8 MiB
  private static final int REQUESTS_UNDER_WAY = 2;
  /** Statuses of a whole batch that one of its items, or their number, may have caused. */
  private static final Set<Integer> ABOUT_THE_REQUEST = Set.of(400, 413, 415, 422, 429);

  /** Sends one request. */
  interface Transport {
    CompletableFuture<Answer> post(String path, byte[] body, Duration limit);
  }

  /** One call: a request of its own, or an item of a batch. */
  record Call(
      String path,
      byte[] alone,
      byte[] item,
      int messages,
      Duration limit,
      CompletableFuture<Answer> answer) {}

  private final Transport transport;
  private final String batchPath;
  private final Returning returning;
  private final BlockingQueue<Call> waiting = new LinkedBlockingQueue<>();
  private final Semaphore slots = new Semaphore(REQUESTS_UNDER_WAY);
  private final Thread sender;

  SharedRequests(Transport transport, String batchPath, Returning returning) {
    this.transport = transport;
    this.batchPath = batchPath;
    this.returning = returning;
    this.sender = new Thread(this::run, "outbox " + batchPath);
    sender.setDaemon(true);
    sender.start();
  }

  /** Sends an item alone or in a batch. A future that is done before is not sent. */
  CompletableFuture<Answer> exchange(
      String path, byte[] alone, byte[] item, int messages, Duration limit) {
    var call = new Call(path, alone, item, messages, limit, new CompletableFuture<>());
    returning.came();
    waiting.add(call);
    return call.answer;
  }

  /** Sends nothing more; a call that waits fails at the end of its time. */
  @Override
  public void close() {
    sender.interrupt();
  }

  private void run() {
    try {
      while (true) {
        List<Call> calls = gather();
        calls.removeIf(call -> call.answer.isDone()); // its caller has given up
        if (calls.isEmpty()) {
          slots.release();
        } else {
          send(calls);
        }
      }
    } catch (InterruptedException closed) {
      Thread.currentThread().interrupt();
    }
  }

  private List<Call> gather() throws InterruptedException {
    List<Call> calls = new ArrayList<>();
    int bytes = 0;
    int messages = 0;
    Call next = waiting.take();
    slots.acquire();
    while (next != null) {
      calls.add(next);
      bytes += next.item.length;
      messages += next.messages;
      next = messages < MESSAGES_ENOUGH && bytes < BYTES_ENOUGH ? another() : null;
    }
    return calls;
  }

  /** Returns the next call, or null if none is expected soon. */
  private Call another() throws InterruptedException {
    Call next = waiting.poll();
    if (next == null && returning.areExpected()) {
      next = waiting.poll(returning.pauseNanos(), TimeUnit.NANOSECONDS);
      if (next == null) {
        returning.expectNone();
      }
    }
    return next;
  }

  private void send(List<Call> calls) {
    long began = System.nanoTime();
    Call first = calls.get(0);
    CompletableFuture<Answer> request =
        calls.size() == 1
            ? transport.post(first.path, first.alone, first.limit)
            : transport.post(batchPath, batch(calls), first.limit);
    request.whenComplete(
        (answer, error) -> {
          returning.answered(calls.size(), System.nanoTime() - began);
          slots.release();
          for (int index = 0; index < calls.size(); index++) {
            share(answer, error, calls.get(index), calls.size() == 1 ? -1 : index);
          }
        });
  }

  /** Gives a call its own answer; {@code index} is its place in a batch, or -1. */
  private void share(Answer answer, Throwable error, Call call, int index) {
    if (error != null) {
      call.answer.completeExceptionally(error);
    } else if (index < 0) {
      call.answer.complete(answer);
    } else if (ABOUT_THE_REQUEST.contains(answer.status())) {
      CompletableFuture<Answer> alone = transport.post(call.path, call.alone, call.limit);
      alone.whenComplete((own, lost) -> share(own, lost, call, -1));
    } else {
      call.answer.complete(answer.status() == 207 ? answer.item(index) : answer);
    }
  }

  private static byte[] batch(List<Call> calls) {
    var body = new ByteArrayOutputStream();
    String before = "{\"items\":[";
    for (Call call : calls) {
      body.writeBytes(before.getBytes(StandardCharsets.US_ASCII));
      body.writeBytes(call.item);
      before = ",";
    }
    body.writeBytes("]}".getBytes(StandardCharsets.US_ASCII));
    return body.toByteArray();
  }
}
