#!/bin/sh
# Makes every kept result of quality anew, from the root of the repository: tests/bench/measure.sh FOLDER, where FOLDER
# holds photographs and photos.jsonl, a line {"file": name, "classes": {name: count}, "captions": [text]} for each.
# `chosen`: μ and β as half A gives them without labels, rounded (calibrate.json); elsewhere the encoder's preset is used.
# `timing` and `qdrant` are measured on an idle machine: lcse bench timing | qdrant --images "$photos", with
# --out tests/bench/results.
set -eu
mkdir -p build
ln -sfn "$(realpath "$1")" build/photos
photos=build/photos
labels=$photos/photos.jsonl
keep="--cache build/vectors --out tests/bench/results"
chosen="--mu 0.1 --beta 7.5"

lcse bench calibrate "$labels" --half A $keep --name calibrate
lcse bench calibrate "$labels" --half A --mode anchored $keep --name calibrate-anchored
lcse bench retrieval "$labels" --regions $keep --name retrieval
lcse bench retrieval "$labels" --half A --fewest 4 --regions $keep --name retrieval-half-a
lcse bench retrieval "$labels" --half B --fewest 4 --regions $keep --name retrieval-half-b
lcse bench retrieval "$labels" $chosen --regions $keep --name retrieval-unlabelled
lcse bench factor-build "$labels" -o build/factor.jsonl
lcse bench factor build/factor.jsonl --images "$photos" --parses own $keep --name factor-preset
lcse bench factor build/factor.jsonl --images "$photos" --parses own $chosen $keep --name factor
lcse bench factor-build "$labels" --half B -o build/factor-b.jsonl
lcse bench factor build/factor-b.jsonl --images "$photos" --parses own $chosen $keep --name factor-half-b
lcse bench factor build/factor-b.jsonl --images "$photos" --parses own --mu 0.08 --beta 20 $keep --name factor-half-b-labelled
lcse bench retention "$labels" $chosen $keep --name retention
lcse bench diagnose "$labels" $chosen $keep --name diagnose --html build/diagnose.html

# Another encoder, built the same way: build/prototype is a folder with image.onnx, text.onnx, vocab.txt, manifest.json.
if [ -d build/prototype ]; then
    lcse bench retrieval "$labels" --encoder "starter?folder=build/prototype" --mu 0.24 --beta 20 --regions $keep \
        --name retrieval-prototype
fi
