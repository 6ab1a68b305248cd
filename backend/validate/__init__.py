"""Does the predicted gain hold on this machine? Predict first, then measure a real PostgreSQL, then compare."""
