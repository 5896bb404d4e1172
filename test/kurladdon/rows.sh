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
DIR=. EKCO_VERSION=0.29.0 EKCO_LIVE_KOTSADM=''
files=addons/ekco/0.29.0

# configuration VARIABLES writes the configuration for these variables, unless it exists, and prints its directory.
configuration() {
	local to
	to=out/$(printf %s "$1" | md5sum | cut -d ' ' -f 1)
	if [ ! -e "$to" ]; then
		mkdir -p "$to"
		: >"$to/live"
		# Variables are separated by blanks.
		# shellcheck disable=SC2086,SC2163
		(if [ -n "$1" ]; then export $1; fi && ekco_write_config "$files" "$to")
	fi
	echo "$to"
}

without_token() { grep -v '^storage_migration_auth_token:' "$1/config.yaml"; }

while IFS=$'\t' read -r field variables line; do
	case $field in '#'*) continue ;; esac
	variables=${variables#'(none)'}
	got=$(configuration "$variables")
	if [ "$line" = - ]; then
		[ "$(without_token "$got")" = "$(without_token "$(configuration '')")" ] || echo "$field: changes something"
	elif ! grep -qxF -- "$line" "$got/config.yaml"; then
		echo "$field with \"$variables\" is not \"$line\" but \"$(grep "^${line%%:*}" "$got/config.yaml")\""
	fi
done <"$here/fields.tsv"
