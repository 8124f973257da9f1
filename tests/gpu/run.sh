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
missed=0
while read -r name _ _ function _; do
  case $name in '#'*) continue ;; esac
  if $run "$out/breaks/$name/conformance" 2>&1 | grep -q "^$function .*WRONG"; then
    echo "break $name: found at ${function%,}"
  else
    echo "break $name: NOT found at ${function%,}"
    missed=$((missed + 1))
  fi
done < tests/gpu/breaks.txt
echo "$missed breaks missed"
[ "$missed" = 0 ]
