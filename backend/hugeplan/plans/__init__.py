"""What is decided about kept plans: proposed, approved, in force, superseded; of one node and of a whole fleet plan."""
