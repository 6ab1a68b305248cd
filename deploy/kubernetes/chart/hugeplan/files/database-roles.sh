# Keeps the database's roles as their password files say, beside PostgreSQL and over its socket; compose and the chart
# run it. Migrations run as hugeplan, which owns the tables; the service as hugeplan_service, which changes rows alone;
# dashboards read as hugeplan_reader, once an administrator has given it a password. It begins anew when a file changes
# and when PostgreSQL starts, so a password is changed by its file, and an older volume gets the roles that it lacks.
# The superuser has no password: it is reached over the socket alone.
#   OWNER_PASSWORD_FILE    password of hugeplan
#   SERVICE_PASSWORD_FILE  password of hugeplan_service; where there is no such file, there is no such role
set -u
trap 'exit 0' TERM INT
socket=/var/run/postgresql

apply() {
  # A password is in no log of statements, also where one fails.
  psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --host "$socket" --username "$1" --dbname hugeplan <<'SQL'
SET search_path = pg_catalog; -- the owner of the tables writes the schema public, and this is the superuser
SET log_statement = 'none';
SET log_min_error_statement = 'panic';
SET log_min_duration_statement = -1;
\getenv owner owner
\getenv service service
BEGIN;
SELECT format('CREATE ROLE %I', name)
FROM (VALUES ('hugeplan'), ('hugeplan_service'), ('hugeplan_reader')) wanted (name)
WHERE (name <> 'hugeplan_service' OR :'service' <> '') AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec
ALTER ROLE hugeplan LOGIN PASSWORD :'owner';
SELECT :'service' <> '' AS has_service \gset
\if :has_service
ALTER ROLE hugeplan_service LOGIN PASSWORD :'service';
\endif
ALTER DATABASE hugeplan OWNER TO hugeplan;
SELECT 'ALTER ROLE postgres PASSWORD NULL' WHERE EXISTS (SELECT FROM pg_roles WHERE rolname = 'postgres') \gexec
COMMIT;
SQL
}

done='' said=''
while :; do
  # Another file behind the name is another PostgreSQL, which may have another volume.
  started=$(stat -c %i.%Y "$socket/.s.PGSQL.5432" 2>/dev/null) || started=''
  owner=$(cat "$OWNER_PASSWORD_FILE" 2>/dev/null) || owner=''
  service=$(cat "${SERVICE_PASSWORD_FILE:-/dev/null}" 2>/dev/null) || service=''
  now="$started $owner $service"
  if [ "$now" != "$done" ] && [ -n "$started" ] && [ -n "$owner" ]; then
    export owner service
    # Volumes of the first releases have hugeplan as their superuser.
    if error=$(apply postgres 2>&1) || case $error in
        *'role "postgres" does not exist'*) error=$(apply hugeplan 2>&1) ;;
        *) false ;;
      esac; then
      done=$now said=''
      echo "the database's roles are as their password files say"
    elif [ "$error" != "$said" ]; then
      said=$error
      echo "the database's roles are not set yet: $error" >&2
    fi
  fi
  sleep 2 &
  wait $!
done
