-- name: in_key_order
-- Makes the reads of this transaction use index ranges in key order. Leaves have no statistics. A plan that
-- collects and sorts the whole backlog for a short slice would make the backlog grow. They are planned for their
-- values: how much there is to read decides the plan.
SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_seqscan', 'off', true),
    set_config('plan_cache_mode', 'force_custom_plan', true)
