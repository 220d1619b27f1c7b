"""The relay's protocol: every decision about the next action of a shard, as pure functions.

One Kafka transaction contains a batch's records and, last, the manifest that lists every message
of the batch. A relay that takes a shard over fences first and reads the manifests back second. Then
it compares them with the commit log: Kafka shows what was published, PostgreSQL shows what must be
published, and both are compared. No I/O, no clock: ``step`` maps (state, answer) to
(state, plan), and the driver (checker/relay/shard_relay.py) executes the plan.

The phases are IDLE -> VERIFY -> FENCE -> REPLAY -> RUN. A transaction in doubt drops the handle and
leads back to VERIFY. A doubt about PostgreSQL leads back to IDLE. A contradiction that a program
must not resolve leads to HALT.
"""
