#!/bin/sh
# Prints the objects on drives that lie below another object: the path of the object above and
# its own, from the bucket on, each with a zero byte after it. It reads names only, and stops after
# some objects. It prints an empty pair now and then, so that nobody takes the connection for dead.
LC_ALL=C
found=0 seen=0

# walk looks through directory $1; $2 is the object above it, empty if there is none.
walk() {
	if ! [ -r "$1" ] || ! [ -x "$1" ]; then
		[ -d "$1" ] || return 0 # it was deleted
		echo "cannot read $1" >&2
		exit 1
	fi
	for d in "$1"/*/ "$1"/.[!.]*/ "$1"/..?*/; do
		d=${d%/}
		[ -d "$d" ] || continue
		seen=$((seen + 1))
		[ $((seen % 10000)) -ne 0 ] || printf '\0\0'
		if ! [ -f "$d/xl.meta" ] && ! [ -f "$d/xl.json" ]; then
			walk "$d" "$2"
			continue
		fi
		if [ -n "$2" ]; then
			printf '%s\0%s\0' "${2#"$drive"/}" "${d#"$drive"/}"
			found=$((found + 1))
			[ "$found" -lt 100 ] || exit 0
		fi
		walk "$d" "$d"
	done
}

for drive; do
	[ -d "$drive" ] || { echo "there is no $drive" >&2; exit 1; }
	for bucket in "$drive"/*/; do
		[ "$bucket" = "$drive/*/" ] || [ "$bucket" = "$drive/lost+found/" ] || walk "${bucket%/}" ""
	done
done
