-- name: set_timeout
-- Limits the session in time, if this server has the setting.
SELECT set_config(name, %(value)s, false) FROM pg_settings WHERE name = %(name)s
