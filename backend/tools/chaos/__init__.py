"""`make chaos`: what the service must survive, each part by itself or all after each other."""
