load world

# rows.sh checks each row of fields.tsv. It needs neither the API nor the image.
@test "every field sets its key" {
	run "$BATS_TEST_DIRNAME/rows.sh"
	[ "$status" -eq 0 ] && [ -z "$output" ] || fails "exit code $status"
	[ "$(cut -d : -f 1 out/*/config.yaml | sort | uniq -c | sort -u -k 1,1 | wc -l)" -eq 1 ] || fails "a key is missing or twice"
}

@test "fields.tsv has every key of config.yaml" {
	run awk -F '[\t:]' 'FILENAME ~ /tsv/ { if ($0 ~ /\t[a-z_]+: /) { split($0, f, "\t"); sub(/:.*/, "", f[3]); seen[f[3]] = 1 } next }
		/^[a-z]/ && $1 != "storage_migration_auth_token" && !($1 in seen)' "$BATS_TEST_DIRNAME/fields.tsv" addons/ekco/0.29.0/templates/config.yaml
	[ -z "$output" ] || fails "keys that are not in fields.tsv"
}

@test "any text in rook.nodes is quoted" {
	nodes=$'- name: "a"\n  x: \'$(touch pwned) `touch pwned` $HOME ${HOME}\'\r\n  path: C:\\dev\\n\ttab %s END\n__CONFIG_HASH__ & | # no: comment'
	installs "ROOK_NODES=$nodes" ROOK_VERSION=1.12.8
	ok
	[ ! -e pwned ]
	[ "$(grep -c '^    rook_storage_nodes: "' "$STATE/applied/configmap.yaml")" -eq 1 ]
	line=$(config | sed -n 's/^rook_storage_nodes: "\(.*\)"$/\1/p')
	# YAML reads a carriage return as a blank.
	[[ $line != *$'\r'* ]] || fails "$line"
	[ "$(sed 's/\\n/\x01/g' <<<"${line//\\\\/$'\x02'}" | tr '\001\002' '\n\\' | sed 's/\\"/"/g; s/\\t/\t/g; s/\\r/\r/g')" = "$nodes" ] || fails "$line"
}

@test "an invalid value is reported with its field, and nothing is applied" {
	installs EKCO_NODE_UNREACHABLE_TOLERATION_DURATION='5 minutes' EKCO_MIN_READY_MASTER_NODE_COUNT=-1 EKCO_POD_IMAGE_OVERRIDES=a,b=c \
		EKCO_ENVOY_PODS_NOT_READY_DURATION='$(touch pwned)' ROOK_MINIMUM_NODE_COUNT=x MINIO_VERSION=1 MINIO_NAMESPACE='a/../b' \
		EKCO_MIN_READY_WORKER_NODE_COUNT=-2
	refused 'ekco.nodeUnreachableToleration is "5 minutes": want a duration above zero' \
		'ekco.minReadyMasterNodeCount is "-1": want a whole number of at least 1' \
		'ekco.podImageOverrides is "a,b=c": want original=override pairs' \
		'ekco.envoyPodsNotReadyDuration is "$(touch pwned)": want' \
		'rook.minimumNodeCount is "x": want' 'minio.namespace is "a/../b": want' \
		'ekco.minReadyWorkerNodeCount is "-2": want' "Nothing was applied"
	not_called "kubectl apply"
	[ ! -e pwned ]
}

@test "a control character is reported with its field" {
	installs ROOK_NODES=$'a\001b'
	refused "rook.nodes has a control character"
	not_called "kubectl apply"
}

@test "an invalid key of the ConfigMap is reported" {
	installs
	edits -e '$a journal_retention: forever'
	installs
	refused 'journal_retention in ConfigMap kurl/ekco-config is "forever": want a duration'
}

@test "image overrides stop the installer if EKCO does not support them" {
	installs EKCO_POD_IMAGE_OVERRIDES=a=b
	refused "ekco.podImageOverrides is set, but EKCO 0.29.0 cannot replace images"
	not_called "kubectl apply"
	not_called spinner_until
}

@test "text from outside with % and backslashes is printed as it is" {
	installs
	edits -e 's|^certificates_dir: .*|certificates_dir: "/etc/50% off\\\\n%s"|' -e '$aa%z: 1'
	installs ROOK_NODES='- name: "100%"'
	ok
	says 'a%z'
	says 'keeps certificates_dir at /etc/50% off\\n%s;'
	says 'changes rook_storage_nodes from empty to - name: \"100%\"'
	edits '$aa%z: 2'
	installs
	refused "Cannot read the settings in ConfigMap kurl/ekco-config" "key a%z is set already"
}

@test "a change of the ConfigMap during the run is not overwritten" {
	installs
	edits '$ajournal_retention: 24h'
	echo 's/^journal_retention: .*/journal_retention: 48h/' >"$STATE/edits-during"
	installs
	refused "ConfigMap kurl/ekco-config was changed during this run" "Run the installer again"
	installs
	ok
	has "journal_retention: 48h"
}

@test "without random bytes there is no installation without a token" {
	printf '#!/bin/sh\nexit 1\n' >head
	chmod +x head
	installs PATH="$PWD:$PATH"
	refused "Cannot read /dev/urandom" "Cannot create the content of ./kustomize/ekco/settings"
	not_called "kubectl apply"
}

@test "a run that is killed in ctr is repaired by the next one" {
	touch "$STATE/ctr-killed"
	installs
	[ "$status" -ne 0 ]
	[ -e "$STATE/containers/flatten-config.snapshot" ]
	rm "$STATE/ctr-killed"
	installs
	ok
}

@test "the installer may be read from standard input" {
	# As in "curl https://kurl.sh/ID | sudo bash": what ctr reads, bash does not.
	run bash <<-END
		EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 PRIVATE_ADDRESS=10.0.0.1 installer.sh install || exit 7
		exit 5
	END
	[ "$status" -eq 5 ] || fails "exit code $status"
}

@test "a container that does not run ends the installer, and nothing is applied" {
	for name in flatten-config check-config; do
		printf '#!/bin/bash\n[[ $* != *" %s ekco "* ]] || exit 1\nexec "%s/fakes/ctr" "$@"\n' $name "$BATS_TEST_DIRNAME" >ctr
		chmod +x ctr
		PATH=$PWD:$PATH installs
		refused "Cannot check the configuration with EKCO's image"
		not_called "kubectl apply"
	done
}

@test "unsupported settings and unknown keys are reported" {
	installs
	edits '$aunknown_key: 1'
	installs ROOK_MINIMUM_NODE_COUNT=3
	ok
	says "WARN EKCO: keys that this EKCO does not know and ignores: unknown_key"
	says "this version cannot yet create a Ceph cluster (rook_minimum_node_count)"
}
