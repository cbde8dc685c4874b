"""What people say about footage, as records: people and their faces, and sidecars that carry it."""
