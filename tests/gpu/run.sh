#!/bin/sh
# Runs what build.sh built, on a machine with a Hopper GPU: tests/gpu/run.sh [--breaks].
# Exit 0: every device function conforms, and with --breaks every listed error was found at the
# function it is in. A program ends itself when a kernel hangs; one that cannot is killed here.
set -u
cd "$(dirname "$0")/../.."
out=build/conformance
run="timeout -k 10 60"
$run "$out/conformance" || exit $?
[ "${1:-}" = --breaks ] || exit 0

found=$(grep -v '^#' tests/gpu/conformance/breaks.txt | tr -s ' ' | cut -d ' ' -f 1,4 | xargs -P "${JOBS:-4}" -L 1 sh -c '
  if $1 "$2/breaks/$3/conformance" 2>&1 | grep -q "^$4 .*WRONG"; then
    echo "break $3: found at ${4%,}"
  else
    echo "break $3: NOT found at ${4%,}"
  fi' run "$run" "$out")
echo "$found"
missed=$(echo "$found" | grep -c 'NOT found')
echo "$missed breaks missed"
[ "$missed" = 0 ]
