"""`make attack`: what one request of each role may cost the service, and everybody else."""
