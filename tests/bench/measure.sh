#!/bin/sh
# Makes every kept result anew, from the root of the repository: tests/bench/measure.sh [folder of the photographs].
# μ and β: what half A says without labels, rounded (calibrate.json); `retrieval-preset` uses the encoder's preset.
set -eu
photos=${1:-../shared/data/photos}
labels=$photos/photos.jsonl
keep="--cache build/vectors --out tests/bench/results"
chosen="--mu 0.1 --beta 7.5"
mkdir -p build

lcse bench calibrate "$labels" --half A $keep --name calibrate
lcse bench calibrate "$labels" --half A --mode anchored $keep --name calibrate-anchored
lcse bench retrieval "$labels" $chosen $keep --name retrieval
lcse bench retrieval "$labels" $chosen --regions $keep --name retrieval-regions
lcse bench retrieval "$labels" --half B --fewest 4 $chosen --regions $keep --name retrieval-half-b
lcse bench retrieval "$labels" $keep --name retrieval-preset
lcse bench factor-build "$labels" -o build/factor.jsonl
lcse bench factor build/factor.jsonl --images "$photos" --parses own $chosen $keep --name factor
lcse bench factor-build "$labels" --half B -o build/factor-b.jsonl
lcse bench factor build/factor-b.jsonl --images "$photos" --parses own $chosen $keep --name factor-half-b
lcse bench factor build/factor-b.jsonl --images "$photos" --parses own --mu 0.08 --beta 20 $keep --name factor-half-b-labelled
lcse bench retention "$labels" $chosen $keep --name retention
lcse bench diagnose "$labels" $chosen $keep --name diagnose --html build/diagnose.html
