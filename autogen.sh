#!/bin/sh
# Generates configure and the Makefile templates from a fresh checkout. It configures nothing.
set -e
cd "$(dirname "$0")"
exec autoreconf --install --force "$@"
