#!/bin/sh
# Removes what neither image needs of Debian's Python: its own tests and games, and the compiled form of modules that
# ours do not import. Their source stays, and is compiled where somebody imports it after all.
set -eu
for library in /usr/lib/python3.*; do
  cd "$library"
  rm -rf pydoc_data test turtle* __pycache__/turtle* lib-dynload/_test* lib-dynload/_xxtestfuzz*
  for module in _pydecimal _pyio doctest ftplib imaplib mailbox pdb pickletools pydoc smtplib; do
    rm -f "__pycache__/$module".*
  done
  for codec in big5 cp euc gb hp hz iso johab koi kz mac ptcp shift tis; do
    rm -f "encodings/__pycache__/$codec"*
  done
  for package in _pyrepl curses dbm sqlite3 unittest wsgiref xmlrpc; do
    rm -rf "$package/__pycache__"
  done
done
