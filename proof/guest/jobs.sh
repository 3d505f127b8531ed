#!/bin/sh
# Runs the jobs of one machine with the runsc and the busybox of PATH. Usage: jobs.sh FOLDER
#
# FOLDER/jobs has one job a line, ACTION NAME LABEL:
#   take     start a container and checkpoint it
#   restore  restore snapshots/NAME and see whether it goes on
#   retake   the same, and checkpoint what was restored
# FOLDER/rootfs is the container's root, FOLDER/config/NAME.json its configuration. What each job left is in
# FOLDER/results/NAME: "started" and "checkpointed" (exit status), "output" of the container, "stderr" of runsc,
# "image" (the checkpoint).
cd "$1" || exit
mkdir -p results rootfs/proc

sandbox() {
    timeout 120 runsc --root="$PWD/runsc" --network=none --platform=systrap --ignore-cgroups "$@"
}

counted() {
    tr -d '\0' <"$1" | grep -c '^count '
}

# The counter has printed three lines, or did not within 30 s; it goes on by about ten a second.
counting() {
    tries=300
    while [ "$(counted "$1")" -lt 3 ] && [ $tries -gt 0 ]; do
        tries=$((tries - 1))
        sleep 0.1
    done
}

runsc cpu-features >results/features
runsc --version >results/runsc

while read -r action name label; do
    echo "proof: $label"
    out=results/$name
    mkdir -p "$out"
    cp "config/$name.json" config.json
    if [ "$action" = take ]; then
        sandbox run --detach --bundle=. "$name" </dev/null >>"$out/output" 2>>"$out/stderr"
    else
        sandbox restore --detach --bundle=. --image-path="snapshots/$name" "$name" \
            </dev/null >>"$out/output" 2>>"$out/stderr"
    fi
    status=$?
    echo $status >"$out/started"
    [ $status -ne 0 ] || counting "$out/output"
    if [ $status -eq 0 ] && [ "$action" != restore ]; then
        sandbox checkpoint --image-path="$out/image" "$name" </dev/null 2>>"$out/stderr"
        echo $? >"$out/checkpointed"
    fi
    sandbox delete --force "$name" </dev/null 2>>"$out/stderr"
done <jobs
