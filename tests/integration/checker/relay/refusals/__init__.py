"""What Kafka refuses is held and published later; everything else flows."""
