"""What users say about footage, as records: people and their faces, and the sidecar files that carry it."""
