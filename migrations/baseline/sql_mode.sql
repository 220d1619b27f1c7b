-- SQL mode: a producer publishes in its own transaction, by EXECUTE on outbox.publish and no other right.

-- What a producer's own transaction published and the service has not yet admitted into half_message, op_message
-- and commit_log. A row that is visible is committed: nobody is asked. ``place`` is the order of the calls.
CREATE TABLE outbox.plain_message (
    half_id bigint NOT NULL CONSTRAINT pk_plain_message PRIMARY KEY,
    place bigint GENERATED ALWAYS AS IDENTITY,
    nonce bigint NOT NULL,
    published_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    producer_group_id integer NOT NULL,
    topic_id integer NOT NULL,
    transaction_id text,
    key bytea,
    value bytea,
    headers bytea[],
    content_type text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
-- Finds the next calls in SQL mode, for a batch of an admission.
CREATE INDEX ix_plain_message_place ON outbox.plain_message (place);

-- Which roles may publish for which producer group, themselves or through a role that they are members of.
CREATE TABLE outbox.plain_publisher (
    role_name text NOT NULL,
    producer_group_id integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_plain_publisher PRIMARY KEY (role_name, producer_group_id)
);

-- Whether a role may insert into a table, or may become a role that may.
CREATE FUNCTION outbox.may_insert(role oid, witness regclass) RETURNS boolean LANGUAGE sql STABLE STRICT
RETURN EXISTS (
    SELECT FROM pg_class c
    WHERE c.oid = witness AND (
        pg_has_role(role, c.relowner, 'MEMBER') OR has_any_column_privilege(role, c.oid, 'INSERT')
        OR EXISTS (SELECT FROM aclexplode(c.relacl) AS granted
                   WHERE granted.privilege_type = 'INSERT' AND granted.grantee <> 0
                       AND pg_has_role(role, granted.grantee, 'MEMBER'))));

-- Tells whether a session of this role and database can write no row whose order the watermark guards: producers
-- hold EXECUTE on outbox.publish and nothing more. Whoever may insert, or may become a role that may, can. NULL where
-- the session has no role or database.
CREATE FUNCTION outbox.is_foreign(role oid, database oid) RETURNS boolean LANGUAGE sql STABLE STRICT
RETURN database <> (SELECT oid FROM pg_database WHERE datname = current_database()) OR NOT (
    outbox.may_insert(role, 'outbox.half_message') OR outbox.may_insert(role, 'outbox.commit_log')
    OR outbox.may_insert(role, 'outbox.check_queue'));

-- The lowest xid of the snapshot that could still write such a row. A transaction counts as foreign only while it
-- is seen to run, in a session known to be foreign; one that nobody owns up to holds the rest back, as it always did.
CREATE FUNCTION outbox.first_unsettled(snapshot pg_snapshot) RETURNS bigint LANGUAGE sql STABLE
RETURN (
    SELECT coalesce(min(open.xid::text::bigint), pg_snapshot_xmax(snapshot)::text::bigint)
    FROM pg_snapshot_xip(snapshot) AS open (xid)
    WHERE NOT EXISTS (
        SELECT FROM pg_stat_get_activity(NULL) AS session
        WHERE session.backend_xid = open.xid::xid AND outbox.is_foreign(session.usesysid, session.datid)));

-- The watermark: every based xid below it has ended, so rows below it are final. STABLE, hence read in the same snapshot
-- as the statement that compares with it. Where SQL mode is on, transactions of foreign sessions do not hold it back.
CREATE FUNCTION outbox.watermark() RETURNS bigint LANGUAGE sql STABLE
RETURN (
    SELECT base + CASE
        WHEN plain_outbox THEN outbox.first_unsettled(pg_current_snapshot())
        ELSE pg_snapshot_xmin(pg_current_snapshot())::text::bigint END
    FROM outbox.installation);

-- CRC-32 as zlib computes it, four bits at a time: the shard of a (topic, key) must be the one that REST gives it.
CREATE FUNCTION outbox.crc32(data bytea) RETURNS bigint LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    step CONSTANT bigint[] := '{0,498536548,997073096,651767980,1994146192,1802195444,1303535960,1342533948,'
        '3988292384,4027552580,3604390888,3412177804,2607071920,2262029012,2685067896,3183342108}';
    crc bigint := 4294967295;
BEGIN
    FOR place IN 0 .. length(data) - 1 LOOP
        crc := crc # get_byte(data, place);
        crc := (crc >> 4) # step[(crc & 15) + 1];
        crc := (crc >> 4) # step[(crc & 15) + 1];
    END LOOP;
    RETURN crc # 4294967295;
END $$;

-- The public id of a message: a UUIDv8 of its half id and its 59 random bits.
CREATE FUNCTION outbox.message_id(half_id bigint, nonce bigint) RETURNS uuid LANGUAGE sql IMMUTABLE STRICT
RETURN (lpad(to_hex(half_id >> 15), 12, '0') || '8' || lpad(to_hex((half_id & 32767) >> 3), 3, '0')
    || to_hex((-9223372036854775808)::bigint | ((half_id & 7) << 59) | nonce))::uuid;

-- 59 random bits from the system's own source.
CREATE FUNCTION outbox.make_nonce() RETURNS bigint LANGUAGE sql VOLATILE
RETURN ('x' || right(gen_random_uuid()::text, 12) || left(gen_random_uuid()::text, 3))::bit(60)::bigint >> 1;

CREATE FUNCTION outbox.refuse(broken text, code text DEFAULT '22023') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'outbox.publish: %', broken USING ERRCODE = code;
END $$;

-- The bytes of a text in base64 with its padding; NULL if it is none.
CREATE FUNCTION outbox.from_base64(given text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    found bytea;
BEGIN
    found := decode(given, 'base64');
    RETURN CASE WHEN translate(encode(found, 'base64'), E'\n', '') = given THEN found END;
EXCEPTION WHEN invalid_parameter_value THEN
    RETURN NULL;
END $$;

-- Judges headers by the rules of prepare; returns names and values in turn. json keeps their order, jsonb does not.
CREATE FUNCTION outbox.plain_headers(headers json) RETURNS bytea[] LANGUAGE plpgsql STABLE AS $$
DECLARE
    header record;
    flat bytea[] := '{}';
    bytes integer := 0;
    found bytea;
BEGIN
    IF json_typeof(headers) <> 'object' THEN
        PERFORM outbox.refuse('headers must be a JSON object');
    END IF;
    FOR header IN SELECT key AS name, json_typeof(value) AS kind, lower(key) AS low, value #>> '{}' AS text,
            count(*) OVER (PARTITION BY key) > 1 AS repeated
        FROM json_each(headers) WITH ORDINALITY AS each (key, value, place) ORDER BY place
    LOOP
        found := CASE header.kind WHEN 'string' THEN convert_to(header.text, 'UTF8')
            WHEN 'object' THEN (
                SELECT outbox.from_base64(max(value #>> '{}')) FROM json_each(header.text::json)
                HAVING count(*) = 1 AND max(key) = 'base64' AND max(json_typeof(value)) = 'string') END;
        IF header.kind <> 'null' AND found IS NULL THEN
            PERFORM outbox.refuse(format('the value of header %L is no string, no {"base64": …} and not null', header.name));
        ELSIF header.name !~ '^[A-Za-z0-9._-]{1,128}$' THEN
            PERFORM outbox.refuse('a header name may hold 1 to 128 of A-Z a-z 0-9 . _ -');
        ELSIF header.repeated THEN
            PERFORM outbox.refuse(format('the header name %L is repeated', header.name));
        ELSIF header.low = 'delay' OR starts_with(header.low, 'timer_') THEN
            PERFORM outbox.refuse('a message has no delay');
        ELSIF header.low IN ('content-type', 'traceparent', 'tracestate')
            OR starts_with(header.low, 'outbox_') OR starts_with(header.low, 'webhook-') THEN
            PERFORM outbox.refuse(format('the header name %L is reserved', header.name));
        ELSIF octet_length(found) > 4096
            OR header.kind = 'string' AND header.text ~ '[\u0001-\u001f\u007f-\u009f]' THEN
            PERFORM outbox.refuse(format('header %L is longer than 4096 bytes or a text with a control character', header.name));
        END IF;
        flat := flat || ARRAY[convert_to(header.name, 'UTF8'), found];
        bytes := bytes + length(header.name) + coalesce(octet_length(found), 0);
    END LOOP;
    IF cardinality(flat) > 128 OR bytes > 32768 THEN
        PERFORM outbox.refuse('more than 64 headers, or more than 32768 bytes of them');
    END IF;
    RETURN nullif(flat, '{}');
END $$;

-- Returns the interned ids of a group that the calling role may publish for and of a topic that it may write, and what
-- the relay last saw of the topic.
CREATE FUNCTION outbox.plain_target(
    group_name text, topic_name text, OUT group_id integer, OUT topic_id integer, OUT max_bytes integer, OUT compacted boolean
) LANGUAGE plpgsql STABLE AS $$
DECLARE
    allowed text[];
BEGIN
    SELECT g.id, g.topics INTO group_id, allowed FROM outbox.producer_group g
    WHERE g.name = group_name AND g.deleted_at IS NULL AND EXISTS (
        SELECT FROM outbox.plain_publisher p JOIN pg_roles r ON r.rolname = p.role_name
        WHERE p.producer_group_id = g.id AND pg_has_role(session_user, r.oid, 'MEMBER'));
    IF group_id IS NULL THEN
        PERFORM outbox.refuse(format('role %I may not publish for producer group %L', session_user, group_name), '42501');
    END IF;
    SELECT t.id, t.max_message_bytes, t.compacted INTO topic_id, max_bytes, compacted FROM outbox.topic t
    WHERE t.name = topic_name AND (cardinality(allowed) = 0 OR EXISTS (
        SELECT FROM unnest(allowed) AS a (pattern)
        WHERE a.pattern = t.name
            OR (right(a.pattern, 1) = '*' AND starts_with(t.name, left(a.pattern, -1)))));
    IF topic_id IS NULL THEN
        PERFORM outbox.refuse(format('topic %L is not known, or the group may not write it', topic_name), '42501');
    END IF;
END $$;

-- A header as its name and its value; NULL without a value.
CREATE FUNCTION outbox.flat_header(name text, value text) RETURNS bytea[] LANGUAGE sql IMMUTABLE STRICT
RETURN ARRAY[convert_to(name, 'UTF8'), convert_to(value, 'UTF8')];

-- The bytes of a varint in a record: a byte has seven bits, and the first of all is the sign.
CREATE FUNCTION outbox.varint_bytes(number integer) RETURNS integer LANGUAGE sql IMMUTABLE
RETURN 1 + (number > 63)::integer + (number > 8191)::integer + (number > 1048575)::integer;

-- The bytes of a field of a record, with its length; the length of none is -1, in one byte.
CREATE FUNCTION outbox.field_bytes(field bytea) RETURNS integer LANGUAGE sql IMMUTABLE
RETURN coalesce(outbox.varint_bytes(octet_length(field)) + octet_length(field), 1);

-- The most bytes of a batch, not compressed, with this record alone, as a prepare counts them (api.ingest.record_size):
-- the given headers, and those that are known only when it is published.
CREATE FUNCTION outbox.batch_bytes(key bytea, value bytea, headers bytea[]) RETURNS integer LANGUAGE sql STABLE
RETURN (
    SELECT 61 + outbox.varint_bytes(size) + size
    FROM (SELECT 3 + outbox.field_bytes(key) + outbox.field_bytes(value) + outbox.varint_bytes((count(*) / 2)::integer)
            + sum(outbox.field_bytes(part))::integer AS size
        FROM unnest(headers || ARRAY['outbox_message_id', repeat('-', 36), 'outbox_batch', '15.999999999999.1999',
            'outbox_decided_by', 'producer']::bytea[]) AS part) AS record);

-- Returns the next half id of the calling transaction; one transaction has 2 048. The transaction itself keeps its last
-- id, and no table is read: of two SERIALIZABLE transactions that publish at a time, PostgreSQL would refuse one, because
-- each reads where the other writes. A savepoint that is rolled back takes the setting back with its rows. Whoever sets it
-- to another value breaks the key of no transaction but their own. The shard is folded onto those in use.
CREATE FUNCTION outbox.next_half_id(shard bigint) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    first CONSTANT bigint := outbox.current_xid() << 15;
    last CONSTANT bigint := nullif(current_setting('outbox.last_half_id', true), '');
    made bigint := first;
BEGIN
    IF last BETWEEN first AND first + 32767 THEN
        made := first + (((last - first) >> 4) + 1) * 16;
    END IF;
    IF made > first + (2047 << 4) THEN
        PERFORM outbox.refuse('a transaction may publish at most 2048 messages', '54000');
    END IF;
    made := made + next_half_id.shard % (SELECT i.shards FROM outbox.installation i);
    PERFORM set_config('outbox.last_half_id', made::text, true);
    RETURN made;
END $$;

-- Publishes one record if and only if the calling transaction commits; returns its message id. The caller needs
-- EXECUTE alone. Raises 42501 for a group or topic that is not the caller's, 22023 for a value that prepare would
-- refuse, 54000 beyond 2 048 messages in one transaction.
CREATE FUNCTION outbox.publish(
    producer_group text, topic text, value bytea, key text DEFAULT NULL, headers json DEFAULT '{}',
    transaction_id text DEFAULT NULL, content_type text DEFAULT NULL
) RETURNS uuid LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target CONSTANT record := outbox.plain_target(producer_group, topic);
    flat CONSTANT bytea[] := outbox.plain_headers(coalesce(headers, '{}'));
    raw_key CONSTANT bytea := convert_to(key, 'UTF8');
    random CONSTANT bigint := outbox.make_nonce();
    size CONSTANT integer := outbox.batch_bytes(raw_key, value, flat || outbox.flat_header('outbox_producer_group', producer_group)
        || outbox.flat_header('outbox_transaction_id', transaction_id) || outbox.flat_header('content-type', content_type));
    new_id bigint;
BEGIN
    IF octet_length(raw_key) > 8192 THEN
        PERFORM outbox.refuse('the key is longer than 8192 bytes');
    ELSIF coalesce(octet_length(raw_key), 0) + coalesce(octet_length(value), 0)
        + coalesce((SELECT sum(octet_length(part)) FROM unnest(flat) AS part), 0) > 1000000 THEN
        PERFORM outbox.refuse('key, value and headers exceed 1000000 bytes');
    ELSIF transaction_id !~ '^[^\u0001-\u001f\u007f-\u009f]{1,128}$' THEN
        PERFORM outbox.refuse('transaction_id must be 1 to 128 characters without controls');
    ELSIF length(content_type) > 255
        OR content_type !~ '^[A-Za-z0-9!#$&^_.+*''`|~%-]+/[A-Za-z0-9!#$&^_.+*''`|~%-]+[\u0020-\u007e]*$' THEN
        PERFORM outbox.refuse('content_type is not a media type');
    ELSIF size > target.max_bytes THEN
        PERFORM outbox.refuse(format('the record has %s bytes with its headers, and the topic accepts %s'
            ' (max.message.bytes, segment.bytes)', size, target.max_bytes));
    ELSIF target.compacted AND raw_key IS NULL THEN
        PERFORM outbox.refuse('the topic is compacted: Kafka takes no record without a key');
    END IF;
    new_id := outbox.next_half_id(CASE
        WHEN raw_key IS NULL THEN random % 16
        ELSE outbox.crc32(convert_to(topic, 'UTF8') || raw_key) % 16 END);
    INSERT INTO outbox.plain_message (
        half_id, nonce, producer_group_id, topic_id, transaction_id, key, value, headers, content_type)
    VALUES (new_id, random, target.group_id, target.topic_id, transaction_id, raw_key, value, flat, content_type);
    RETURN outbox.message_id(new_id, random);
END $$;

-- Lets a role publish for a producer group into these topics, which must exist in Kafka, and turns the mode on.
-- For the owner of the schema; raises when the role or the group is unknown.
CREATE FUNCTION outbox.allow_publish(role_name text, group_name text, topics text[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox.plain_publisher (role_name, producer_group_id)
    SELECT allow_publish.role_name, g.id FROM outbox.producer_group g
    WHERE g.name = group_name AND g.deleted_at IS NULL
    ON CONFLICT ON CONSTRAINT pk_plain_publisher DO NOTHING;
    IF NOT EXISTS (SELECT FROM outbox.producer_group g WHERE g.name = group_name AND g.deleted_at IS NULL) THEN
        RAISE EXCEPTION 'producer group % is not registered', group_name USING ERRCODE = '22023';
    ELSIF EXISTS (SELECT FROM unnest(topics) AS t (name)
                  WHERE t.name !~ '^[A-Za-z0-9._-]{1,249}$' OR t.name ~ '^(\.{1,2}$|__)' OR t.name LIKE 'outbox.%') THEN
        RAISE EXCEPTION 'topics: a name has a form that its rule refuses, or is reserved' USING ERRCODE = '22023';
    END IF;
    INSERT INTO outbox.topic (name) SELECT t.name FROM unnest(topics) AS t (name) ON CONFLICT DO NOTHING;
    EXECUTE format('GRANT USAGE ON SCHEMA outbox TO %I', role_name);
    EXECUTE format('GRANT EXECUTE ON FUNCTION outbox.publish TO %I', role_name);
    UPDATE outbox.installation SET plain_outbox = true WHERE NOT plain_outbox;
END $$;

-- Waits until no other transaction admits messages of SQL mode, before this one has an xid.
CREATE FUNCTION outbox.begin_admission() RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    LOCK TABLE outbox.plain_publisher IN SHARE UPDATE EXCLUSIVE MODE;
END $$;
