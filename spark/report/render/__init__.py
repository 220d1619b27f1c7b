"""How a report looks: one self-contained HTML page, Markdown, JSON and CSV. No value in any."""
