"""The relay's protocol: every decision about what a shard does next, as pure functions.

One Kafka transaction holds a batch's records and, last, the manifest that names every message of
it. Whoever takes a shard over fences first, reads the manifests back second, and compares them with
the commit log: Kafka says what was published, PostgreSQL says what must be, neither is believed
alone. No I/O, no clock: ``step`` maps (state, answer) to (state, plan), and the driver
(checker/relay/shard_relay.py) performs the plan.

IDLE -> VERIFY -> FENCE -> REPLAY -> RUN; a doubt about a transaction drops the handle and goes back
to VERIFY; a doubt about PostgreSQL goes back to IDLE; what nobody may guess ends in HALT.
"""
