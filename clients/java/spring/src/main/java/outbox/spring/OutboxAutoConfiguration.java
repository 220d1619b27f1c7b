package outbox.spring;

import java.sql.SQLException;
import javax.sql.DataSource;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;
import outbox.client.Barrier;
import outbox.client.CheckEndpoint;
import outbox.client.TransactionProducer;

/** Makes the beans of the outbox where {@code outbox.api.url} is set; each may be replaced. */
@AutoConfiguration(
    afterName = {
      "org.springframework.boot.autoconfigure.jdbc.DataSourceTransactionManagerAutoConfiguration",
      "org.springframework.boot.autoconfigure.orm.jpa.HibernateJpaAutoConfiguration",
      "org.springframework.boot.jdbc.autoconfigure.DataSourceTransactionManagerAutoConfiguration",
      "org.springframework.boot.hibernate.autoconfigure.HibernateJpaAutoConfiguration"
    })
@ConditionalOnProperty("outbox.api.url")
@EnableConfigurationProperties(OutboxProperties.class)
public class OutboxAutoConfiguration {
  @Bean
  @ConditionalOnMissingBean
  TransactionProducer outboxProducer(OutboxProperties settings) {
    var api = settings.api();
    return new TransactionProducer(
        api.url(), settings.producerGroup(), api.key(), settings.timeout(), null);
  }

  @Bean
  @ConditionalOnMissingBean
  Barrier outboxBarrier(OutboxProperties settings, DataSource database) throws SQLException {
    Barrier barrier = new Barrier(settings.producerGroup(), database);
    if (settings.createTable()) {
      barrier.createTable();
    }
    return barrier;
  }

  @Bean
  @ConditionalOnMissingBean
  OutboxTemplate outboxTemplate(
      TransactionProducer producer,
      Barrier barrier,
      PlatformTransactionManager transactions,
      DataSource database) {
    return new OutboxTemplate(producer, barrier, new TransactionTemplate(transactions), database);
  }

  /** The check endpoint of a servlet application, where the group's secret is set. */
  @Configuration(proxyBeanMethods = false)
  @ConditionalOnProperty("outbox.check.secret")
  @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
  static class CheckBack {
    @Bean
    @ConditionalOnMissingBean
    CheckEndpoint outboxCheckEndpoint(OutboxProperties settings, Barrier barrier) {
      return new CheckEndpoint(
          settings.producerGroup(), settings.check().secret(), barrier::check);
    }

    @Bean
    CheckController outboxCheckController(CheckEndpoint endpoint) {
      return new CheckController(endpoint);
    }
  }
}
