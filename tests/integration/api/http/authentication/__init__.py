"""Who may call: keys, scopes, strangers and browsers."""
