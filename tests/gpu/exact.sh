#!/bin/sh
# The lowered kernels themselves, bit for bit: every example as a KW_EXACT build (docs/evidence.md).
#   tests/gpu/exact.sh build    here; needs no GPU: build/exact/<target>/<example>, and broken kernels
#                               in build/exact/broken/<name>, which must be refuted. Half a minute
#                               each; JOBS=N: so many at a time (1)
#   tests/gpu/exact.sh run      where the GPU is; exit 1 if one differs, or a broken one does not
set -eu
cd "$(dirname "$0")/../.."
out=build/exact

# name, file, sed expression: an error in the text or the vocabulary that the goldens do not have
breaks='mask_one_more|kernel.cu|s/j < args.N ? x/j <= args.N ? x/
no_rescaling|kernel.cu|s/if (raised) kw::map(acc/if (false) kw::map(acc/
other_slot_of_v|kernel.cu|s/wgmma_add(acc, p, shared.v_s\[t\])/wgmma_add(acc, p, shared.v_s[t + 1])/
other_rows_of_q|kernel.cu|s/(cta \* WARPGROUPS + r) \* 64}, shared.q_s/(cta * WARPGROUPS + 1 - r) * 64}, shared.q_s/
swizzle|kw/tile/tiles.cuh|s/row \* pitch \/ 128 % chunks/row * pitch \/ 128 % (chunks \/ 2)/
fragment_columns|kw/tile/tiles.cuh|s/n % (C \/ 2) \/ 4 \* 8 + n % 2;/n % (C \/ 2) \/ 4 * 8 + 1 - n % 2;/
part_of_a_multicast|kw/ops/copies.cuh|s/first = by_panels ? part \*/first = by_panels ? 0 */'

one() { # target, example
  made="$out/made/$1.$2"
  build/kernelwright make "examples/$2.py" --target "$1" --check quick --out "$made"
  build/kernelwright exact "$made" --out "$out/$1/$2"
}

build() {
  rm -rf "$out"
  mkdir -p "$out/made"
  {
    for file in examples/*.py; do echo sm_90a "$(basename "$file" .py)"; done
    for target in sm_80 sm_90; do
      for example in full prefix_lm; do echo $target $example; done
    done
  } | xargs -P "${JOBS:-1}" -L 1 "$0" one
  echo "$breaks" | while IFS='|' read -r name file expression; do
    folder="$out/made/broken.$name"
    cp -r "$out/made/sm_90a.full" "$folder"
    sed -i "$expression" "$folder/$file"
    if cmp -s "$folder/$file" "$out/made/sm_90a.full/$file"; then
      echo "exact.sh: $name changes nothing in $file" >&2
      exit 1
    fi
    build/kernelwright exact "$folder" --out "$out/broken/$name"
  done
}

run() {
  failed=0
  gpu=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
  case $gpu in 8?) gpu=80 ;; esac # what is compiled for 8.0 runs on 8.6 and 8.9
  for folder in "$out/sm_$gpu"*/*; do
    ${PROVE:-build/kernelwright-prove} "$folder" || failed=1
  done
  for folder in "$out"/broken/*; do
    status=0
    ${PROVE:-build/kernelwright-prove} "$folder" || status=$?
    [ "$status" = 1 ] || { echo "exact.sh: $folder was not refuted" >&2; failed=1; }
  done
  return $failed
}

"${@:-build}"
