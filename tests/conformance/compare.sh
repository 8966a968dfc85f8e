#!/bin/sh
# SPDX-License-Identifier: MIT
# The soft driver's answers against an H200's, as TAP. One check may take a minute: the machine may have much to do.
library=${abs_top_builddir:?}/.libs/libhdsoft.so
if [ ! -e "$library" ]; then
    echo "1..0 # SKIP built without shared libraries"
    exit 0
fi
exec "$abs_top_builddir/tests/conformance/conformance" --driver=soft --library="$library" --jobs=2 --time-limit=60 \
    --compare="${abs_top_srcdir:?}/tests/conformance/h200.json"
