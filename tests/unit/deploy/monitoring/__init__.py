"""Alerts, dashboards, and who may change them."""
