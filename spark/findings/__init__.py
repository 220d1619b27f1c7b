"""Findings: classes, causes, rules, evidence, the ledger of a run, and the verdict."""
