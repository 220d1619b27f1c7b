"""Each fault strikes a real service, which continues without loss or duplicate."""
