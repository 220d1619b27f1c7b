-- name: set_timeouts
-- Limits the session in time, as far as this server has the settings.
SELECT set_config(name, text, false)
FROM unnest(%(names)s::text[], %(texts)s::text[]) AS wanted (name, text)
JOIN pg_settings USING (name)
