"""Searches through worlds, and the way to a wrong one."""
