"""Findings: classes, evidence, rules, verdict. Pure."""
