#!/bin/sh
# SPDX-License-Identifier: MIT
# The soft driver's answers against an H200's, as TAP. One check may take a minute: the machine may have much to do.
library=${abs_top_builddir:?}/.libs/libhdsoft.so
if [ ! -e "$library" ]; then
    echo "1..0 # SKIP built without shared libraries"
    exit 0
fi
# A second for each of so many processes, were TSan to wait for late races at their end.
TSAN_OPTIONS="atexit_sleep_ms=0${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
export TSAN_OPTIONS
exec "$abs_top_builddir/tests/conformance/conformance" --driver=soft --library="$library" --jobs=2 --time-limit=60 \
    --compare="${abs_top_srcdir:?}/tests/conformance/h200.json"
