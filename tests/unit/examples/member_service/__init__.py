"""Tests of the member service."""
