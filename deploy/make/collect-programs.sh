#!/bin/sh
# Copies programs of this system, with the shared libraries that another system of the same Debian release may lack.
# Arguments: FOLDER PROGRAM... The programs are then FOLDER/bin/PROGRAM. The C library stays the other system's own.
set -eu
out=$1
shift
mkdir -p "$out/bin" "$out/lib" "$out/libexec"
for program; do
  path=$(readlink -f "$(command -v "$program")")
  cp "$path" "$out/libexec/$program"
  ldd "$path" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | while read -r library; do
    case ${library##*/} in
      libc.so.*|libm.so.*|libpthread.so.*|libdl.so.*|librt.so.*|libresolv.so.*|ld-linux*) ;;
      *) cp -L "$library" "$out/lib/" ;;
    esac
  done
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%s/lib exec %s/libexec/%s "$@"\n' "$out" "$out" "$program" >"$out/bin/$program"
  chmod 755 "$out/bin/$program"
  "$out/bin/$program" --version
done
