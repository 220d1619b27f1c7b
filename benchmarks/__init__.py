"""`make bench`: what a message costs, how fast it is, how long an audit takes, beside RocketMQ."""
