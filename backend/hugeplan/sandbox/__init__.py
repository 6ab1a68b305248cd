"""Work on what strangers wrote, in processes with limits of time and memory (ADR 0033)."""
