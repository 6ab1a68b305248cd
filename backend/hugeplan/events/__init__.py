"""Changes as they happen: a table in the order of commits, a stream of server-sent events, and webhooks."""
