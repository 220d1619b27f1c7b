"""The relay: the protocol that brings commits to Kafka exactly once. Pure."""
