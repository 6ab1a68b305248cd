"""The linter over REST."""
