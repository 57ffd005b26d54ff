#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh [--seconds N] [--jobs J] [--workers W] [--out DIR] [NAME...]: runs fuzzers, each in W
# processes that share what they find, for N seconds a process and J processes at a time; all
# fuzzers if none is named. DIR keeps the results, from which a later run continues: corpus/NAME,
# log/NAME.W, findings/NAME-*, an input each that shows something wrong, and spent/NAME.W, the
# seconds that processors have worked for it in all runs (fewer than N where the machine was busy).
# Prints a table; fails if there is a finding. Needs a shell and coreutils; scripts/fuzz.sh --pack
# puts it beside them.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
bin=${FUZZ_BIN:-$here/bin}
base=${FUZZ_CORPUS:-$here/corpus}
lib=${FUZZ_LIB:-$here/lib}
driver=${FUZZ_DRIVER:-$here/lib/libcuda-soft.so}
seconds=60
jobs=$(nproc)
workers=1
out=fuzz-out
findings_max=8

ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1}
UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
export ASAN_OPTIONS UBSAN_OPTIONS
# With more bits of randomness than it knows of, the sanitizer does not find its addresses.
fixed=
if setarch -R true 2>/dev/null; then
	fixed="setarch -R"
fi

# start NAME ARGUMENT...
start() {
	program=$bin/fuzz_$1
	shift
	GP_DRIVER="$driver" LD_LIBRARY_PATH="$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
		timeout -k 10 $((left + 300)) $fixed "$program" "$@"
}

# one NAME WORKER: runs one process for its time; restarts it after a finding.
one() {
	mkdir -p "$out/corpus/$1" "$out/log" "$out/findings" "$out/spent" "$out/run/$1.$2"
	end=$(($(date +%s) + seconds))
	left=$seconds
	found=0
	: >"$out/log/$1.$2"
	while [ "$left" -gt 0 ] && [ "$found" -lt "$findings_max" ]; do
		if (cd "$out/run/$1.$2" && start "$1" -max_total_time="$left" -timeout=60 \
			-rss_limit_mb=4096 -max_len=65536 -reload=10 -print_final_stats=1 \
			-artifact_prefix="$out/findings/$1-" "$out/corpus/$1" "$base/$1" \
			>>"$out/log/$1.$2" 2>&1); then
			break
		fi
		left=$((end - $(date +%s)))
		if tail -n 20 "$out/log/$1.$2" | grep -q 'ASan cannot proceed correctly'; then
			continue
		fi
		found=$((found + 1))
		echo "fuzz_$1: ended with an error, see $out/log/$1.$2" >>"$out/log/$1.$2"
	done
	# Of this shell's own children: in a pipeline they would be another's.
	times >"$out/run/$1.$2/times"
	print_seconds "$out/run/$1.$2/times" >>"$out/spent/$1.$2"
	rm -rf "$out/run/$1.$2"
}

# print_seconds FILE: prints the times of children, user and system, from the output of times, in whole seconds.
print_seconds() {
	sed -n '2s/[ms.]/ /gp' "$1" | {
		read -r user_minutes user _ system_minutes system _
		echo $((user_minutes * 60 + user + system_minutes * 60 + system))
	}
}

# sum NAME PATTERN: adds up a number of all logs of a fuzzer.
sum() {
	total=0
	for number in $(sed -n "s/$2/\\1/p" "$out/log/$1".*); do
		total=$((total + number))
	done
	echo "$total"
}

# minutes NAME: prints the processor time of all its runs.
minutes() {
	total=0
	for seconds in $(cat "$out/spent/$1".* 2>/dev/null); do
		total=$((total + seconds))
	done
	echo $((total / 60))
}

# coverage NAME: the most that one process has seen.
coverage() {
	sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$out/log/$1".* | sort -n | tail -1
}

report() {
	bad=0
	printf '%-16s %14s %9s %8s %8s %8s\n' fuzzer executions coverage corpus minutes crashes
	for name in $names; do
		crashes=$(find "$out/findings" -name "$name-*" | grep -c "/$name-[^/]*\$" || true)
		failed=$(cat "$out/log/$name".* | grep -c '^fuzz_.*ended with an error' || true)
		[ "$crashes" -gt 0 ] || crashes=$failed
		bad=$((bad + crashes))
		printf '%-16s %14s %9s %8s %8s %8s\n' "$name" \
			"$(sum "$name" '^stat::number_of_executed_units: *\([0-9]*\)')" \
			"$(coverage "$name")" "$(ls "$out/corpus/$name" | wc -l)" "$(minutes "$name")" "$crashes"
	done
	[ "$bad" = 0 ]
}

names=
while [ $# -gt 0 ]; do
	case $1 in
	--seconds) seconds=$2 && shift ;;
	--jobs) jobs=$2 && shift ;;
	--workers) workers=$2 && shift ;;
	--out) out=$2 && shift ;;
	--one) one "$2" "$3" && exit ;;
	-*) sed -n '3,9s/^# //p' "$0" >&2 && exit 2 ;;
	*) names="$names $1" ;;
	esac
	shift
done
mkdir -p "$out"
out=$(cd "$out" && pwd)
[ -n "$names" ] || names=$(cd "$bin" && find . -maxdepth 1 -name 'fuzz_*' -type f | sed 's,^./fuzz_,,' | sort)
for name in $names; do
	if [ ! -x "$bin/fuzz_$name" ]; then
		echo "run.sh: there is no fuzzer $name" >&2
		exit 2
	fi
done
# Where processes may not look at one another there is no search for leaks.
left=60
name=${names##* }
if start "$name" -runs=1 "$base/$name" 2>&1 | grep -q 'LeakSanitizer has encountered a fatal'; then
	ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
	echo "run.sh: leaks cannot be looked for here"
fi
worker=1
while [ "$worker" -le "$workers" ]; do
	for name in $names; do
		echo "$name $worker"
	done
	worker=$((worker + 1))
done | xargs -P "$jobs" -n 2 sh "$here/$(basename "$0")" --seconds "$seconds" --out "$out" --one
report
