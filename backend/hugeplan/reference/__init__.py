"""What the service knows from the start: TLB facts of processors, and the engines it can size."""
