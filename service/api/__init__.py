"""HTTP: declared operations, strict requests, problem documents, documentation."""
