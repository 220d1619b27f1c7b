package outbox.client;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Concurrent calls of one operation share requests: while one is under way, further calls wait and
 * travel together in the next one. A single call is sent at once. While nothing is under way there is
 * no thread.
 */
final class SharedRequests {
  private static final int MESSAGES_MAX = 1000;
  private static final int CHARACTERS_MAX = 2 * 1024 * 1024; // the service accepts 8 MiB
  private static final JsonNode LATE = Message.JSON.createObjectNode().put("error", "it took too long");

  private record Call(String item, int messages, BlockingQueue<JsonNode> answer) {}

  private final Function<String, JsonNode> post;
  private final Queue<Call> waiting = new ArrayDeque<>();
  private boolean isUnderWay;

  SharedRequests(Function<String, JsonNode> post) {
    this.post = post;
  }

  /** Sends an item, alone or with others, and returns its own answer. */
  JsonNode share(String item, int messages, long nanos) throws InterruptedException {
    var call = new Call(item, messages, new ArrayBlockingQueue<>(1));
    synchronized (this) {
      waiting.add(call);
      if (!isUnderWay) {
        var sender = new Thread(this::sendAll, "outbox-sender");
        sender.setDaemon(true);
        sender.start();
        isUnderWay = true;
      }
    }
    JsonNode answer = call.answer.poll(nanos, TimeUnit.NANOSECONDS);
    return answer == null ? LATE : answer;
  }

  private void sendAll() {
    for (List<Call> calls = take(); !calls.isEmpty(); calls = take()) {
      send(calls);
      Thread.yield(); // those who can go on now add their calls too
    }
  }

  /** Returns the calls of the next request; without any the request is no longer under way. */
  private synchronized List<Call> take() {
    List<Call> calls = new ArrayList<>();
    int messages = 0;
    int characters = 0;
    for (Call call = waiting.peek(); call != null; call = waiting.peek()) {
      messages += call.messages;
      characters += call.item.length();
      if (!calls.isEmpty() && (messages > MESSAGES_MAX || characters > CHARACTERS_MAX)) {
        break;
      }
      calls.add(waiting.remove());
    }
    isUnderWay = !calls.isEmpty();
    return calls;
  }

  /** If a request is refused as a whole, a call or their number may be the cause: each goes alone. */
  private void send(List<Call> calls) {
    var body = calls.stream().map(Call::item).collect(Collectors.joining(",", "{\"items\":[", "]}"));
    JsonNode answer = post.apply(body);
    boolean isRefused = answer.path("status").asInt() / 100 == 4;
    JsonNode items = answer.path("items");
    for (int place = 0; place < calls.size(); place++) {
      Call call = calls.get(place);
      if (isRefused && calls.size() > 1) {
        send(List.of(call));
      } else {
        call.answer.add(items.size() == calls.size() ? items.get(place) : answer);
      }
    }
  }
}
