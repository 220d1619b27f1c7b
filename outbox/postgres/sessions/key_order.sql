-- name: in_key_order
-- Makes the reads of this transaction use index ranges in key order. Leaves have no statistics. A plan that
-- collects and sorts the whole backlog for a short slice would make the backlog grow.
SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true)
