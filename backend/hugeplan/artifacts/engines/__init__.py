"""Engine settings in the dialect of the engine's own file: one renderer per dialect."""
