"""Findings: classes, rules, evidence, the ledger of a run, and the verdict."""
