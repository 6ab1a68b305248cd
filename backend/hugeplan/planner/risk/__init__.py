"""Workloads over time: the probability that ordinary memory runs out, and the forecast of their growth."""
