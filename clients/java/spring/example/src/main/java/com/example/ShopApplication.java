package com.example;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RestController;
import outbox.client.Message;
import outbox.client.OutboxException;
import outbox.spring.OutboxTemplate;

/** A shop: {@code PUT /orders/NUMBER} stores an order, and announces it in Kafka. */
@SpringBootApplication
@RestController
public class ShopApplication {
  private final OutboxTemplate outbox;
  private final JdbcTemplate database;

  ShopApplication(OutboxTemplate outbox, JdbcTemplate database) {
    this.outbox = outbox;
    this.database = database;
  }

  public static void main(String[] arguments) {
    SpringApplication.run(ShopApplication.class, arguments);
  }

  @PutMapping("/orders/{number}")
  String order(@PathVariable("number") long number) {
    var message =
        Message.of("orders.placed", "{\"order\":" + number + "}").transactionId("order-" + number);
    try {
      return outbox.execute(message, tx -> store(number));
    } catch (OutboxException error) {
      if (error.reason() != OutboxException.Reason.COMMITTED) {
        throw error;
      }
      return "order " + number + " was stored before"; // it read its own row, if that is needed
    }
  }

  private String store(long number) {
    database.update("INSERT INTO shop_order VALUES (?)", number);
    return "order " + number + " is stored";
  }
}
