"""The report: summary, documents, storage."""
