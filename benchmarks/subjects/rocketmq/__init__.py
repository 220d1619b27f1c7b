"""Apache RocketMQ beside us: its own servers, its own producer, from Maven Central."""
