"""PostgreSQL: engine, sessions, tables, migrations and the embedded server of the demo and the tests."""
