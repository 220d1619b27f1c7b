"""What is measured: an installation of this tree, and RocketMQ."""
