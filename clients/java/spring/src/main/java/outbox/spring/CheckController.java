package outbox.spring;

import java.io.IOException;
import java.io.InputStream;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.util.MultiValueMap;
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
  ResponseEntity<byte[]> check(@RequestHeader MultiValueMap<String, String> headers, InputStream body)
      throws IOException {
    CheckEndpoint.Reply reply = endpoint.answer(headers, body);
    return ResponseEntity.status(reply.status())
        .contentType(MediaType.APPLICATION_JSON)
        .body(reply.body());
  }
}
