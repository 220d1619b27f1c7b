import java.time.Duration;
import java.util.ArrayList;
import java.util.Scanner;
import java.util.concurrent.atomic.AtomicInteger;
import outbox.client.Message;
import outbox.client.TransactionProducer;

/**
 * Sends transactions with the Java client from many threads: reads lines "threads messages", answers
 * each with the seconds that it took. The local transaction does nothing. Arguments: URL, group,
 * topic, bytes of a value.
 */
public final class JavaLoad {
  public static void main(String[] arguments) throws Exception {
    var limit = Duration.ofMinutes(1);
    var producer = new TransactionProducer(arguments[0], arguments[1], null, limit, null);
    var value = "x".repeat(Integer.parseInt(arguments[3]));
    var lines = new Scanner(System.in);
    while (lines.hasNextInt()) {
      int count = lines.nextInt();
      int messages = lines.nextInt();
      long began = System.nanoTime();
      var next = new AtomicInteger();
      var threads = new ArrayList<Thread>();
      for (int thread = 0; thread < count; thread++) {
        threads.add(new Thread(() -> {
          for (int n = next.getAndIncrement(); n < messages; n = next.getAndIncrement()) {
            producer.send(Message.of(arguments[2], value).key("key-" + n % 1000), messageId -> {});
          }
        }));
      }
      threads.forEach(Thread::start);
      for (Thread thread : threads) {
        thread.join();
      }
      System.out.println((System.nanoTime() - began) / 1e9);
    }
  }
}
