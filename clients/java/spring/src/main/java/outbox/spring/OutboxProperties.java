package outbox.spring;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The settings {@code outbox.*}; the environment has them as {@code OUTBOX_API_URL}, and so on.
 *
 * @param producerGroup the group that is asked about the messages
 * @param timeout of one call, with its retries
 * @param createTable creates the barrier's table at the start; without it Flyway may do that
 */
@ConfigurationProperties("outbox")
public record OutboxProperties(
    Api api,
    String producerGroup,
    @DefaultValue("10s") Duration timeout,
    boolean createTable,
    @DefaultValue CheckBack check) {

  /** The address of the outbox, and the key where it asks for one. */
  public record Api(String url, String key) {}

  /** The check endpoint, with the group's secret. */
  public record CheckBack(String secret, @DefaultValue("/outbox/check") String path) {}
}
