#!/bin/bash
# Stands in for the entrypoint of the official image in tests: initdb once, then the server, as the user postgres.
# It knows POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD, POSTGRES_PASSWORD_FILE, POSTGRES_INITDB_ARGS and the scripts of
# /docker-entrypoint-initdb.d, and nothing else of the real one.
set -eu
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" /var/run/postgresql
  chown -R postgres "$(dirname "$(dirname "$PGDATA")")" /var/run/postgresql
  if [ -n "${POSTGRES_PASSWORD_FILE:-}" ]; then
    POSTGRES_PASSWORD=$(cat "$POSTGRES_PASSWORD_FILE")
    export POSTGRES_PASSWORD
    unset POSTGRES_PASSWORD_FILE
  fi
  exec setpriv --reuid postgres --regid postgres --clear-groups "$0" "$@"
fi
user=${POSTGRES_USER:-postgres}
# As the official one at each start: a volume's owner may have been given to a group.
[ ! -d "$PGDATA" ] || chmod 00700 "$PGDATA"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --encoding=UTF8 --locale=C.UTF-8 --pgdata="$PGDATA" --username="$user" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") \
    --auth-host=scram-sha-256 --auth-local=trust ${POSTGRES_INITDB_ARGS:-} >/dev/null  # several words, as there
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
  pg_ctl --pgdata="$PGDATA" --options="-c huge_pages=off -c listen_addresses='' -c unix_socket_directories=/var/run/postgresql" --wait start >/dev/null
  [ "${POSTGRES_DB:-$user}" = postgres ] || createdb --host=/var/run/postgresql --username="$user" "${POSTGRES_DB:-$user}"
  for script in /docker-entrypoint-initdb.d/*.sh; do
    [ ! -f "$script" ] || . "$script"
  done
  pg_ctl --pgdata="$PGDATA" --mode=fast --wait stop >/dev/null
fi
[ "${1:-}" = postgres ] && set -- "$@" -c "listen_addresses=*" -c unix_socket_directories=/var/run/postgresql
exec "$@"
