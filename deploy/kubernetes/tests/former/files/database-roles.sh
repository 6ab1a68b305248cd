# Sourced by the entrypoint of PostgreSQL's image, once, when it makes the data folder; compose and the chart mount it.
# The service's role owns its database and is no superuser. The superuser has no password: it is reached from within the
# container alone. An administrator gives hugeplan_reader a password where dashboards read.
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username postgres --dbname postgres <<'SQL'
\getenv password POSTGRES_PASSWORD
CREATE ROLE hugeplan LOGIN PASSWORD :'password';
CREATE ROLE hugeplan_reader;
ALTER DATABASE hugeplan OWNER TO hugeplan;
ALTER ROLE postgres PASSWORD NULL;
SQL
