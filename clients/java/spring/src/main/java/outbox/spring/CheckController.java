package outbox.spring;

import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import org.springframework.http.HttpHeaders;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RestController;
import outbox.client.CheckEndpoint;

/** Answers the checks of the outbox at {@code outbox.check.path}. */
@RestController
class CheckController {
  private final CheckEndpoint endpoint;

  CheckController(CheckEndpoint endpoint) {
    this.endpoint = endpoint;
  }

  @PostMapping("${outbox.check.path:/outbox/check}")
  ResponseEntity<byte[]> check(@RequestHeader Map<String, String> headers, InputStream body)
      throws IOException {
    CheckEndpoint.Reply reply = endpoint.handle(headers, body);
    return ResponseEntity.status(reply.status())
        .header(HttpHeaders.CONTENT_TYPE, reply.contentType())
        .body(reply.body());
  }
}
