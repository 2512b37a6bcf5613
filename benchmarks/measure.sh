#!/bin/sh
# Makes every kept result of quality anew, from the root of the repository: benchmarks/measure.sh FOLDER, where FOLDER
# holds photographs and photos.jsonl, a line {"file": name, "classes": {name: count}, "captions": [text]} for each.
set -eu
mkdir -p build
ln -sfn "$(realpath "$1")" build/photos
labels=build/photos/photos.jsonl
keep="--cache build/vectors --out benchmarks/results"

lcse bench retrieval "$labels" $keep --name retrieval
lcse bench retrieval "$labels" --half A --fewest 4 $keep --name retrieval-half-a
lcse bench retrieval "$labels" --half B --fewest 4 $keep --name retrieval-half-b
lcse bench reliability "$labels" --half B $keep --name reliability
python -m benchmarks.build_factor "$labels" build/factor.jsonl
lcse bench factor build/factor.jsonl --images build/photos --parses own $keep --name factor
lcse bench retention "$labels" $keep --name retention
lcse bench diagnose "$labels" $keep --name diagnose

# Another encoder, built the same way: build/prototype is a folder with image.onnx, text.onnx, vocab.txt, manifest.json.
if [ -d build/prototype ]; then
    lcse bench retrieval "$labels" --encoder "starter?folder=build/prototype" --mu 0.24 --beta 20 $keep \
        --name retrieval-prototype
fi
