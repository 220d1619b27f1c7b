import java.util.Arrays;
import java.util.Locale;
import java.util.Scanner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * Sends half messages and their COMMIT with RocketMQ's own producer, which many threads share.
 *
 * Reads lines "threads messages" and answers each with one line of JSON. The process stays, so its
 * code is compiled when it is measured. A series ends when the broker has all of its messages in the
 * topic itself, where consumers see them.
 */
public final class TransactionLoad {
    private static final long DRAIN_NANOS = 60_000_000_000L;

    private final TransactionMQProducer producer = new TransactionMQProducer("bench");
    private final String topic;
    private final byte[] value;

    private TransactionLoad(String servers, String topic, int size) throws Exception {
        this.topic = topic;
        this.value = new byte[size];
        Arrays.fill(value, (byte) 'x');
        producer.setNamesrvAddr(servers);
        producer.setSendMsgTimeout(30_000);
        producer.setTransactionListener(new Committing());
        producer.start();
    }

    /** An error ends the process, although the library's threads would go on. */
    public static void main(String[] arguments) {
        int status = 0;
        try (var lines = new Scanner(System.in)) {
            var size = Integer.parseInt(arguments[2]);
            var load = new TransactionLoad(arguments[0], arguments[1], size);
            load.waitForTopic();
            System.out.println("{\"ready\": true}");
            while (lines.hasNextInt()) {
                System.out.println(load.series(lines.nextInt(), lines.nextInt()));
            }
        } catch (Exception error) {
            error.printStackTrace();
            status = 1;
        }
        System.exit(status);
    }

    /**
     * The first message creates the topic, and the broker may need some seconds to know itself. After
     * a pause of two minutes the name server has forgotten it, until it registers again.
     */
    private void waitForTopic() throws InterruptedException {
        for (int tries = 0; ; tries++) {
            try {
                send(0);
                producer.fetchPublishMessageQueues(topic);
                return;
            } catch (Exception error) {
                if (tries == 120) {
                    throw new IllegalStateException("the broker takes no message", error);
                }
                Thread.sleep(500);
            }
        }
    }

    private String series(int threads, int messages) throws Exception {
        waitForTopic();
        long[] nanos = new long[messages];
        var next = new AtomicInteger();
        var failures = new AtomicInteger();
        var done = new CountDownLatch(threads);
        long known = inTopic();
        long began = System.nanoTime();
        for (int thread = 0; thread < threads; thread++) {
            new Thread(() -> {
                for (int n = next.getAndIncrement(); n < messages; n = next.getAndIncrement()) {
                    long sent = System.nanoTime();
                    if (!accepted(n)) {
                        failures.incrementAndGet();
                    }
                    nanos[n] = System.nanoTime() - sent;
                }
                done.countDown();
            }).start();
        }
        done.await();
        long answered = System.nanoTime();
        int wanted = messages - failures.get();
        while (inTopic() - known < wanted && System.nanoTime() - answered < DRAIN_NANOS) {
            Thread.sleep(5);
        }
        long drained = System.nanoTime();
        Arrays.sort(nanos);
        return String.format(
            Locale.ROOT,
            "{\"messages\": %d, \"failures\": %d, \"late\": %d, \"acked_seconds\": %.6f,"
                + " \"through_seconds\": %.6f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}",
            messages, failures.get(), Math.max(0, wanted - (inTopic() - known)),
            (answered - began) / 1e9, (drained - began) / 1e9,
            nanos[messages / 2] / 1e6, nanos[messages * 99 / 100] / 1e6);
    }

    private boolean accepted(int n) {
        try {
            return send(n);
        } catch (Exception error) {
            return false;
        }
    }

    private boolean send(int n) throws Exception {
        var message = new Message(topic, null, "key-" + n % 1000, value);
        var result = producer.sendMessageInTransaction(message, null);
        return result.getSendStatus() == SendStatus.SEND_OK
            && result.getLocalTransactionState() == LocalTransactionState.COMMIT_MESSAGE;
    }

    /** How many messages the queues of the topic have ever had. */
    private long inTopic() throws Exception {
        long sum = 0;
        for (MessageQueue queue : producer.fetchPublishMessageQueues(topic)) {
            sum += producer.maxOffset(queue);
        }
        return sum;
    }

    private static final class Committing implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return LocalTransactionState.COMMIT_MESSAGE;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            return LocalTransactionState.COMMIT_MESSAGE;
        }
    }
}
