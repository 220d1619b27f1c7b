-- name: valid
-- Reads those of some keys that are neither revoked nor expired, each with the groups of the key from which it descends.
-- A use that was noted at a later time than the present was noted before the clock was set back.
SELECT key_id, secret_hmac, producer_groups, scopes, root_key_id,
    coalesce(used_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp(), true) AS unnoted,
    (SELECT root.producer_groups FROM outbox.api_key root WHERE root.key_id = api_key.root_key_id) AS root_groups
FROM outbox.api_key
WHERE key_id = ANY (%(key_ids)s::text[]) AND revoked_at IS NULL
    AND (expires_at IS NULL OR expires_at > clock_timestamp())

-- name: note
-- Notes the use of some keys, and the refusal of others, each at most once a minute. Locks these rows; skips what
-- somebody else has locked.
UPDATE outbox.api_key SET
    used_at = CASE WHEN key_id = ANY (%(used)s::text[]) THEN clock_timestamp() ELSE used_at END,
    refused_at = CASE WHEN key_id = ANY (%(refused)s::text[]) THEN clock_timestamp() ELSE refused_at END
WHERE key_id IN (
    SELECT key_id FROM outbox.api_key
    WHERE key_id = ANY (%(used)s::text[] || %(refused)s::text[]) AND (
        key_id = ANY (%(used)s::text[])
        OR coalesce(refused_at NOT BETWEEN clock_timestamp() - interval '1 minute' AND clock_timestamp(), true))
    FOR UPDATE SKIP LOCKED)

-- name: create
-- Stores a key and its audit row. One that a key of some groups creates descends from it, or from the same key. Returns
-- no row if its time is past.
WITH stored AS (
    INSERT INTO outbox.api_key (key_id, name, secret_hmac, producer_groups, scopes, expires_at, root_key_id)
    SELECT %(key_id)s, %(name)s, %(secret_hmac)s, %(producer_groups)s::text[], %(scopes)s::text[], %(expires_at)s::timestamptz, (
        SELECT coalesce(maker.root_key_id, maker.key_id) FROM outbox.api_key maker
        WHERE maker.key_id = %(actor)s::text AND NOT '*' = ANY (maker.producer_groups))
    WHERE coalesce(%(expires_at)s::timestamptz > clock_timestamp(), true)
    RETURNING *
), audited AS (
    INSERT INTO outbox.audit_log (action, target, key_id, detail)
    SELECT 'key.create', key_id, %(actor)s::text, jsonb_build_object(
        'name', name, 'producer_groups', producer_groups, 'scopes', scopes, 'expires_at', expires_at)
    FROM stored
)
SELECT key_id, name, producer_groups, scopes, expires_at, created_at FROM stored

-- name: page
-- Reads keys that are not revoked, by id, after the last one of the previous page; with groups, only keys that reach
-- no further. The group of all groups is no member of a list of names. With refused, keys that have ended and that
-- somebody used lately.
SELECT key_id, name, producer_groups, scopes, expires_at, created_at, revoked_at, used_at AS last_used_at,
    refused_at AS last_refused_at
FROM outbox.api_key
WHERE key_id > %(after)s AND CASE WHEN %(refused)s
        THEN refused_at > clock_timestamp() - interval '5 minutes'
            AND (revoked_at IS NOT NULL OR expires_at <= clock_timestamp())
        ELSE revoked_at IS NULL END
    AND (%(groups)s::text[] IS NULL OR producer_groups <@ %(groups)s::text[])
ORDER BY key_id
LIMIT %(limit)s

-- name: revoke
-- Revokes a key, with its audit row; returns no row if there is no such key within the groups.
WITH revoked AS (
    UPDATE outbox.api_key SET revoked_at = clock_timestamp()
    WHERE key_id = %(key_id)s AND revoked_at IS NULL
        AND (%(groups)s::text[] IS NULL OR producer_groups <@ %(groups)s::text[])
    RETURNING key_id, name, producer_groups, scopes
), audited AS (
    INSERT INTO outbox.audit_log (action, target, key_id, operator, detail)
    SELECT 'key.revoke', key_id, %(actor)s::text, %(operator)s::text,
        jsonb_build_object('name', name, 'producer_groups', producer_groups, 'scopes', scopes)
    FROM revoked
)
SELECT key_id FROM revoked
