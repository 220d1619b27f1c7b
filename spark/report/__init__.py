"""The report: summary, documents, charts, storage."""
