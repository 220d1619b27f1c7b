"""The console in Chromium, on a real service."""
