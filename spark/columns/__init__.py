"""Records, commits and manifests as Column expressions and frames."""
