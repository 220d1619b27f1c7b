-- Every flush reads this table, so this must not wait long behind a reader that keeps it: run it again then.
SET LOCAL lock_timeout = '2s';

-- Whether a key of at most 40 bytes has the shard of the hash that Kafka's partitioner uses. Two ways at a time would break
-- the order of a key. So an installation keeps the way that it began with.
ALTER TABLE outbox.installation ADD COLUMN shard_by_partition boolean NOT NULL DEFAULT false;

-- Only an installation that this very session has made is new: no program can have used another way yet.
UPDATE outbox.installation SET shard_by_partition = true
WHERE created_at > (SELECT backend_start FROM pg_stat_get_activity(pg_backend_pid()))
    AND NOT EXISTS (SELECT FROM outbox.producer_group);

-- Kafka's hash of a key, an unsigned number of 32 bits, as outbox/messages/murmur2.py computes it.
CREATE FUNCTION outbox.murmur2(data bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    mask CONSTANT bigint := 4294967295;
    m CONSTANT bigint := 1540483477;
    whole CONSTANT integer := length(data) / 4;
    hashed bigint := 2538058380 # length(data);
    mixed bigint;
BEGIN
    FOR word IN 0 .. whole - 1 LOOP
        mixed := 0;
        FOR place IN REVERSE 4 * word + 3 .. 4 * word LOOP
            mixed := (mixed << 8) | get_byte(data, place);
        END LOOP;
        mixed := (mixed * m) & mask;
        hashed := ((hashed * m) & mask) # (((mixed # (mixed >> 24)) * m) & mask);
    END LOOP;
    IF length(data) > 4 * whole THEN
        mixed := 0;
        FOR place IN REVERSE length(data) - 1 .. 4 * whole LOOP
            mixed := (mixed << 8) | get_byte(data, place);
        END LOOP;
        hashed := ((hashed # mixed) * m) & mask;
    END IF;
    hashed := ((hashed # (hashed >> 13)) * m) & mask;
    RETURN hashed # (hashed >> 15);
END $$;

-- As before, with the shard of the partitioner's hash where the installation uses it.
CREATE OR REPLACE FUNCTION outbox.publish(
    producer_group text, topic text, value bytea, key text DEFAULT NULL, headers jsonb DEFAULT '{}',
    transaction_id text DEFAULT NULL, content_type text DEFAULT NULL
) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target CONSTANT record := outbox.plain_target(producer_group, topic);
    flat CONSTANT text[] := outbox.plain_headers(coalesce(headers, '{}'));
    raw_key CONSTANT bytea := convert_to(key, 'UTF8');
    random CONSTANT bigint := outbox.make_nonce();
    new_id bigint;
BEGIN
    IF octet_length(raw_key) > 8192 THEN
        PERFORM outbox.refuse('the key is longer than 8192 bytes');
    ELSIF coalesce(octet_length(raw_key), 0) + coalesce(octet_length(value), 0)
        + octet_length(array_to_string(coalesce(flat, '{}'), '')) > 1000000 THEN
        PERFORM outbox.refuse('key, value and headers exceed 1000000 bytes');
    ELSIF transaction_id !~ '^[^\u0001-\u001f\u007f-\u009f]{1,128}$' THEN
        PERFORM outbox.refuse('transaction_id must be 1 to 128 characters without controls');
    ELSIF length(content_type) > 255
        OR content_type !~ '^[A-Za-z0-9!#$&^_.+*''`|~%-]+/[A-Za-z0-9!#$&^_.+*''`|~%-]+[\u0020-\u007e]*$' THEN
        PERFORM outbox.refuse('content_type is not a media type');
    END IF;
    new_id := outbox.next_half_id(CASE
        WHEN raw_key IS NULL THEN random % 16
        WHEN octet_length(raw_key) <= 40 AND (SELECT i.shard_by_partition FROM outbox.installation i)
            THEN outbox.murmur2(raw_key) % 16
        ELSE outbox.crc32(convert_to(topic, 'UTF8') || raw_key) % 16 END);
    INSERT INTO outbox.plain_message (
        half_id, nonce, producer_group_id, topic_id, transaction_id, key, value, headers, content_type)
    VALUES (new_id, random, target.group_id, target.topic_id, transaction_id, raw_key, value, flat, content_type);
    RETURN outbox.message_id(new_id, random);
END $$;
