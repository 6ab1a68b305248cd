"""Page sizes and buffer pools that fit together: candidates with scores, claims at each size, and the optimiser."""
