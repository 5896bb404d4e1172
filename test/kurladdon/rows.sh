#!/bin/bash
# Checks each row of fields.tsv: with the row's variables, the configuration must have the row's line. Prints each row that
# fails. The working directory is that of kURL, and out/ then has each configuration.
set -eE
here=$(dirname "$0")
# shellcheck source=/dev/null
. "$here/kurl.sh"
# shellcheck source=/dev/null
. addons/ekco/0.29.0/install.sh
# shellcheck disable=SC2034
DIR=. EKCO_VERSION=0.29.0 EKCO_LAST_KOTSADM=''
files=addons/ekco/0.29.0

declare -A made

# configuration VARIABLES sets $got to the directory with the configuration for these variables. It writes it once.
# It starts few processes, because there are many rows.
configuration() {
	got=${made[of $1]:-}
	if [ -n "$got" ]; then return 0; fi
	got=out/${#made[@]}
	made[of $1]=$got
	mkdir -p "$got"
	: >"$got/live"
	# Variables are separated by blanks.
	# shellcheck disable=SC2086,SC2163
	(if [ -n "$1" ]; then export $1; fi && ekco_write_config "$files" "$got")
	sed '/^storage_migration_auth_token:/d' "$got/config.yaml" >"$got/compared"
}

configuration ''
base=$got
while IFS=$'\t' read -r field variables line; do
	case $field in '#'*) continue ;; esac
	configuration "${variables#'(none)'}"
	mapfile -d '' -t content <"$got/config.yaml"
	if [ "$line" = - ]; then
		cmp -s "$got/compared" "$base/compared" || echo "$field: changes something"
	elif [[ $'\n'${content[0]} != *$'\n'"$line"$'\n'* ]]; then
		echo "$field with \"$variables\" is not \"$line\" but \"$(grep "^${line%%:*}" "$got/config.yaml")\""
	fi
done <"$here/fields.tsv"
