"""The node as it is: from a sample to parts that sum to MemTotal, workloads and databases that run.

``parts`` splits MemTotal; ``pools`` says which huge pages are in use; ``databases`` matches what the scenario describes
with what runs; ``workloads`` are the rest; ``start`` puts them together.
"""
