"""HTTP bricks without business words: problems, pagination, limits, sessions, metrics, documentation."""
