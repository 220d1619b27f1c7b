"""The report: summary, documents, tables, storage."""
