"""Statistics over seeds, and what they let infer."""
