load world

applied() { (cd "$STATE/applied" && echo *); }

@test "a fresh install applies everything" {
	installs
	ok
	[ "$(config | wc -l)" -eq 47 ] || fails "$(config | wc -l) keys"
	[ "$(applied)" = "configmap.yaml deployment.yaml namespace-kurl.yaml rbac.yaml service.yaml" ] || fails "$(applied)"
	cmp "$EKCO_HOST_BIN/ekco-purge-node" "$BATS_TEST_DIRNAME/../../deploy/host/ekco-purge-node"
	[ -x "$EKCO_HOST_BIN/ekco-purge-node" ]
	grep -qx EKCO_ADDRESS=10.0.0.1:31880 "$STATE/variables"
	grep -qxE 'EKCO_AUTH_TOKEN=[A-Za-z0-9]{64}' "$STATE/variables"
	has "storage_migration_auth_token: \"$(sed -n 's/EKCO_AUTH_TOKEN=//p' "$STATE/variables")\""
	nothing_deleted
	[ "$(find "$EKCO_HOST_ETC" -type f)" = "" ]
}

@test "a second run keeps the token and the pod" {
	installs
	token=$(cat "$STATE/variables") pod=$(cat "$STATE/pod-uid") before=$(config)
	installs
	ok
	[ "$token" = "$(cat "$STATE/variables")" ] && [ "$before" = "$(config)" ]
	[ "$pod" = "$(cat "$STATE/pod-uid")" ]
	silent WARN
	nothing_deleted
	# Another token does not replace the pod.
	edits 's/^storage_migration_auth_token: .*/storage_migration_auth_token: "other"/'
	installs
	has 'storage_migration_auth_token: "other"'
	[ "$pod" = "$(cat "$STATE/pod-uid")" ]
}

@test "a changed field gives a new pod with the new value" {
	installs
	pod=$(cat "$STATE/pod-uid")
	installs EKCO_SHOULD_ENABLE_PURGE_NODES=1
	ok
	has "purge_dead_nodes: true"
	[ "$pod" != "$(cat "$STATE/pod-uid")" ]
	says "the installer changes purge_dead_nodes from false to true"
}

@test "keys without a field stay, and overwritten keys are reported" {
	installs ROOK_VERSION=1.12.8
	edits -e 's/^maintain_rook_storage_nodes: true/maintain_rook_storage_nodes: false/' -e 's/^max_ceph_pool_replication: 3/max_ceph_pool_replication: 2/' \
		-e '$a journal_retention: 720h\nOSD_purge_wait: "10m"\n# a comment\nminio_copy_bandwidth:\n  16Mi'
	installs ROOK_VERSION=1.12.8
	ok
	has "journal_retention: 720h"
	has 'OSD_purge_wait: "10m"'
	has "minio_copy_bandwidth: 16Mi"
	has "max_ceph_pool_replication: 2"
	has "maintain_rook_storage_nodes: true"
	says "the installer changes maintain_rook_storage_nodes from false to true"
	says "the installer keeps max_ceph_pool_replication at 2; the default is 3"
	before=$(config)
	installs ROOK_VERSION=1.12.8
	ok
	[ "$before" = "$(config)" ]
}

# An administrator may write the ConfigMap in any form that YAML permits.
@test "a ConfigMap in any YAML style keeps its token and keys" {
	installs
	live=$STATE/cluster/configmap/ekco-config
	fresh=$(cat "$live")
	token=$(printf 'a%.0s' {1..64})
	extra="journal_retention: 720h"
	forms=(
		"s/^storage_migration.*/storage_migration_auth_token: $token # of the \"cluster\": 2026/;\$a$extra # a month"
		"s/^storage_migration.*/storage_migration_auth_token: '$token'/;2,\$s/\$/\r/;\$a$extra"
		"s/^storage_migration.*/\"storage_migration_auth_token\" :   \"$token\"/;\$a'journal_retention': '720h'"
		"s/^storage_migration.*/STORAGE_MIGRATION_AUTH_TOKEN:\n  $token/;\$aJournal_Retention:\n    720h"
		"s/^storage_migration.*/storage_migration_auth_token: \"$token\"/;\$s/\$/\n$extra/;2,\$s/^/    /Mg"
		"2,\$c{\"storage_migration_auth_token\": \"$token\", journal_retention: 720h, x-list: [1, b]}"
		"s/^storage_migration.*/storage_migration_auth_token: >-\n  $token/;2i---\n# settings\n$extra"
	)
	for form in "${forms[@]}"; do
		echo "$fresh" >"$live"
		edits "$form"
		installs
		ok
		grep -qx "EKCO_AUTH_TOKEN=$token" "$STATE/variables" || fails "another token after $form"
		[ "$(config | grep -c "^storage_migration_auth_token: \"\?$token\"\?$")" = 1 ] || fails "no token after $form"
		config | grep -qixE 'journal_retention: "?720h"?' || fails "no journal_retention after $form"
		silent aaaa
	done
	before=$(cat "$live") pod=$(cat "$STATE/pod-uid")
	installs
	ok
	[ "$before" = "$(cat "$live")" ] && [ "$pod" = "$(cat "$STATE/pod-uid")" ] || fails "the second run changes something"
	echo "$fresh" >"$live"
	edits '$ax-map:\n  b: [1, "2"] # two\n"a key": 1'
	installs
	has 'x-map: {"b":[1,"2"]}'
	has '"a key": 1'
}

@test "a token in a comment is ignored" {
	installs
	edits 's/^storage_migration.*/storage_migration_auth_token: "" # abc/'
	installs
	ok
	grep -qxE 'EKCO_AUTH_TOKEN=[A-Za-z0-9]{64}' "$STATE/variables"
	silent "$(sed -n 's/^EKCO_AUTH_TOKEN=//p' "$STATE/variables")"
}

@test "a ConfigMap that is not YAML is reported, and nothing is applied" {
	installs
	edits '$aa: b: c'
	: >"$STATE/calls"
	installs
	refused "Cannot read the settings in ConfigMap kurl/ekco-config" "is not valid YAML" "kubectl -n kurl edit configmap ekco-config"
	not_called "kubectl apply"
}

@test "enable_ha_kotsadm stays off after an edit by hand" {
	both="KOTSADM_VERSION=1.120.0 OPENEBS_LOCALPV=1"
	installs KOTSADM_VERSION=1.120.0
	has "enable_ha_kotsadm: false"
	# The first run set it to false, because OpenEBS was missing. Nobody edited it by hand.
	installs $both
	has "enable_ha_kotsadm: true"
	called "{.metadata.annotations.ekco\.kurl\.sh/enable-ha-kotsadm}"
	edits 's/^enable_ha_kotsadm: true/enable_ha_kotsadm: false/'
	installs $both
	installs $both
	ok
	has "enable_ha_kotsadm: false"
	edits 's/^enable_ha_kotsadm: false/enable_ha_kotsadm: true/'
	installs $both
	has "enable_ha_kotsadm: true"
	installs $both EKCO_KOTSADM_SHOULD_DISABLE_MANAGEMENT=1
	has "enable_ha_kotsadm: false"
}

@test "every form of false switches enable_ha_kotsadm off" {
	for text in false False '"FALSE"' f 0 '"0"'; do
		echo "enable_ha_kotsadm: $text" >live
		run env EKCO_LAST_KOTSADM=true KOTSADM_VERSION=1 OPENEBS_LOCALPV=1 installer.sh call ekco_kotsadm live
		ok
		[ "$output" = "enable_ha_kotsadm: false" ] || fails "$text"
	done
}

@test "an upgrade from kURL's EKCO keeps the token" {
	{ echo && sed -e 's/v0.29.0/v0.28.14/' -e 's/^\(storage_migration_auth_token: \).*/\1"'"$(printf 'a%.0s' {1..64})"'"/' addons/ekco/0.29.0/templates/config.yaml; } >"$STATE/cluster/configmap/ekco-config"
	installs
	ok
	has "host_task_image: replicated/ekco:v0.29.0"
	has "storage_migration_auth_token: \"$(printf 'a%.0s' {1..64})\""
	says "the installer changes host_task_image from replicated/ekco:v0.28.14 to replicated/ekco:v0.29.0"
	silent aaaa
}

@test "permissions depend on the installed add-ons" {
	installs MINIO_VERSION=1 MINIO_NAMESPACE=objects KOTSADM_VERSION=1
	ok
	[ "$(applied)" = "configmap.yaml deployment.yaml kotsadm.yaml minio.yaml namespace-kurl.yaml namespace-objects.yaml rbac.yaml service.yaml" ] || fails "$(applied)"
	grep -qx '  namespace: "objects"' "$STATE/applied/minio.yaml"
	not_called "kubectl label"
	# A later run adds the permissions that an earlier one left out.
	touch "$STATE/cluster/namespace/"{kurl,rook-ceph,minio}
	installs MINIO_VERSION=1 ROOK_VERSION=1.12.8 EKCO_OPTIONAL_RBAC=1
	ok
	[ "$(applied)" = "configmap.yaml deployment.yaml minio.yaml optional.yaml rbac.yaml rook.yaml service.yaml" ] || fails "$(applied)"
	grep -qx '  namespace: "minio"' "$STATE/applied/minio.yaml"
	called "kubectl label namespace rook-ceph --overwrite rook-priority.kurl.sh-"
}

@test "a namespace with a longer name is another one" {
	touch "$STATE/cluster/namespace/"{kurl-system,rook-ceph-external}
	installs
	ok
	[ "$(applied)" = "configmap.yaml deployment.yaml namespace-kurl.yaml rbac.yaml service.yaml" ] || fails "$(applied)"
	not_called "kubectl label"
}

@test "MinIO may be in namespace kurl" {
	installs MINIO_VERSION=1 MINIO_NAMESPACE=kurl
	ok
	[ "$(applied)" = "configmap.yaml deployment.yaml minio.yaml namespace-kurl.yaml rbac.yaml service.yaml" ] || fails "$(applied)"
}

@test "the hook does not need MD5" {
	printf '#!/bin/sh\necho "md5sum: libcrypto: unsupported" >&2\nexit 1\n' | tee md5sum >sha256sum
	chmod +x md5sum sha256sum
	PATH=$PWD:$PATH installs
	refused "Cannot compute the checksum of ./kustomize/ekco/config.yaml"
	not_called "kubectl apply"
	rm sha256sum
	PATH=$PWD:$PATH installs
	ok
	pod=$(cat "$STATE/pod-uid")
	PATH=$PWD:$PATH installs EKCO_SHOULD_ENABLE_PURGE_NODES=1
	ok
	[ "$pod" != "$(cat "$STATE/pod-uid")" ]
}

@test "Rook 1.0.4 gets its priority class although kURL sources the file twice" {
	touch "$STATE/cluster/namespace/rook-ceph"
	installs ROOK_VERSION=1.0.4
	ok
	has "rook_priority_class: node-critical"
	grep -q -- 'label namespace rook-ceph --overwrite rook-priority.kurl.sh=$' "$STATE/calls"
}

@test "StorageClass scaling is created if Ceph's StorageClass is missing" {
	installs ROOK_MINIMUM_NODE_COUNT=1
	[ ! -e "$STATE/applied/scaling.yaml" ]
	installs ROOK_MINIMUM_NODE_COUNT=3
	ok
	grep -qx '    storageclass.kubernetes.io/is-default-class: "true"' "$STATE/applied/scaling.yaml"
	grep -qx 'provisioner: openebs.io/local' "$STATE/applied/scaling.yaml"
	grep -qx 'volumeBindingMode: WaitForFirstConsumer' "$STATE/applied/scaling.yaml"
	silent "below 3"
	touch "$STATE/cluster/storageclass/distributed"
	installs ROOK_MINIMUM_NODE_COUNT=3
	[ ! -e "$STATE/applied/scaling.yaml" ]
	# An administrator may have changed it: its other fields cannot be updated, and it need not be the default any more.
	mv "$STATE/cluster/storageclass/"{distributed,scaling}
	installs ROOK_MINIMUM_NODE_COUNT=3
	[ ! -e "$STATE/applied/scaling.yaml" ]
	mv "$STATE/cluster/storageclass/"{scaling,distributed}
	installs ROOK_MINIMUM_NODE_COUNT=2 STORAGE_CLASS=other
	[ -e "$STATE/applied/scaling.yaml" ]
	says "rook.minimumNodeCount is 2: EKCO ignores values below 3"
}

@test "ekco_already_applied does what ekco does" {
	run installer.sh call ekco_already_applied
	ok
	has "host_task_namespace: kurl"
}

@test "a primary that joins gets ekco-purge-node, a worker does not" {
	run installer.sh join
	ok
	[ -z "$(ls "$EKCO_HOST_BIN")" ]
	run env MASTER=1 installer.sh join
	ok
	[ -x "$EKCO_HOST_BIN/ekco-purge-node" ]
	rm "$EKCO_HOST_BIN/ekco-purge-node"
	touch "$EKCO_HOST_ETC/kubernetes/manifests/kube-apiserver.yaml"
	run installer.sh join
	ok
	[ -x "$EKCO_HOST_BIN/ekco-purge-node" ]
	not_called kubectl
}

@test "override images are loaded only in air-gapped installations" {
	run env EKCO_POD_IMAGE_OVERRIDES=a=b AIRGAP=1 installer.sh join
	ok
	mkdir image-overrides
	run env EKCO_POD_IMAGE_OVERRIDES=a=b installer.sh join
	ok
	run env AIRGAP=1 installer.sh join
	ok
	run env EKCO_POD_IMAGE_OVERRIDES=a=b AIRGAP=1 installer.sh join
	ok
	not_called "images import"
	echo plain >image-overrides/a.tar
	echo compressed | gzip >image-overrides/b.tar.gz
	run env EKCO_POD_IMAGE_OVERRIDES=a=b AIRGAP=1 installer.sh join
	ok
	[ "$(cat "$STATE/imported")" = $'plain\ncompressed' ] || fails "$(cat "$STATE/imported")"
	touch "$STATE/containerd-down"
	run env EKCO_POD_IMAGE_OVERRIDES=a=b AIRGAP=1 installer.sh join
	refused "Cannot load the images in ./image-overrides/a.tar"
	rm "$STATE/containerd-down"
	truncate --size=-4 image-overrides/b.tar.gz # the import itself may accept what is left
	run env EKCO_POD_IMAGE_OVERRIDES=a=b AIRGAP=1 installer.sh join
	refused "Cannot load the images in ./image-overrides/b.tar.gz"
}

@test "the hook waits 5 minutes for the webhook, or longer if EKCO gives a reason" {
	waits() { run env EKCO_POD_IMAGE_OVERRIDES=a=b installer.sh call ekco_wait_for_overrides; }
	printf '#!/bin/sh\nexit 1\n' >"$STATE/pod"
	chmod +x "$STATE/pod"
	waits
	refused "EKCO has not registered its webhook pod-image-overrides.kurl.sh within 5 minutes"
	api_fails_at "get mutatingwebhookconfigurations"
	waits
	refused "Cannot read mutatingwebhookconfigurations pod-image-overrides.kurl.sh"
	rm "$STATE/api-fails"
	# EKCO registers the webhook at the third call.
	cat >"$STATE/pod" <<-'END'
		#!/bin/sh
		[ "$*" = "ekco explain pod-image-overrides" ] || exit 1
		echo x >>"$STATE/asked"
		[ "$(wc -l <"$STATE/asked")" -lt 3 ] || touch "$STATE/cluster/mutatingwebhookconfigurations/pod-image-overrides.kurl.sh"
		echo "not yet: the journal is being verified"
	END
	waits
	ok
	says "EKCO does not replace images yet: the journal is being verified"
	[ "$(wc -l <"$STATE/asked")" -eq 3 ]
	waits
	ok
}

@test "the main hook waits for the webhook after it has applied the manifests" {
	mkdir image-overrides
	echo image >image-overrides/a.tar
	touch "$STATE/cluster/mutatingwebhookconfigurations/pod-image-overrides.kurl.sh"
	# This EKCO accepts image overrides.
	printf '#!/bin/bash\nset -o pipefail\n"%s/fakes/ctr" "$@" | sed "/(pod_image_overrides)/d"\n' "$BATS_TEST_DIRNAME" >ctr
	chmod +x ctr
	PATH=$PWD:$PATH installs EKCO_POD_IMAGE_OVERRIDES=a=b AIRGAP=1
	ok
	[ "$(grep -oE '(kubectl apply|images import|spinner_until 300 ekco_succeeds_or_late kubernetes_resource_exists)' "$STATE/calls" | cut -d ' ' -f 1 | xargs)" = "kubectl images spinner_until" ] ||
		fails "$(cat "$STATE/calls")"
}

@test "tolerations that kURL has set stay, others do not" {
	deployment="$BATS_TEST_DIRNAME/../../deploy/deployment.yaml"
	while read -r keeps tolerations; do
		run installer.sh call ekco_keep_tolerations "$tolerations"
		ok
		sed "$output" "$deployment" >kept
		if [ $keeps = keeps ]; then
			grep -qxF "      tolerations: $tolerations" kept && ! grep tolerationSeconds kept || fails "$tolerations are not kept"
		else
			cmp kept "$deployment" || fails "$tolerations are kept"
		fi
	done <<-'END'
		keeps [{"effect":"NoSchedule","key":"node-role.kubernetes.io/control-plane","operator":"Exists"}]
		keeps [{"effect":"NoSchedule","key":"node-role.kubernetes.io/master","operator":"Exists"}]
		drops [{"key":"node-role.kubernetes.io/control-plane","operator":"Exists"},{"key":"other","operator":"Exists"}]
		drops [{"operator":"Exists"}]
		drops
	END
}

@test "a missing function of kURL is reported" {
	for name in bail kubernetes_resource_exists; do
		installs KURL_LACKS=$name
		refused "does not have: $name."
	done
	not_called "kubectl apply"
}

@test "the message about a missing image has the command that loads it" {
	cp "$STATE/images" images
	: >"$STATE/images"
	installs
	refused "docker.io/replicated/ekco:v0.29.0 is not on this host" "gunzip -c ./addons/ekco/0.29.0/images/ekco.tar.gz | ctr -n k8s.io images import -"
	not_called "kubectl apply"
	installs DOCKER_VERSION=20.10
	refused "docker load"
	touch "$STATE/containerd-down"
	installs DOCKER_VERSION=20.10
	refused "Cannot ask Docker for image replicated/ekco:v0.29.0" "systemctl status docker"
	rm "$STATE/containerd-down"
	cp images "$STATE/images"
	touch "$STATE/containerd-down"
	installs
	refused "Cannot ask containerd for image docker.io/replicated/ekco:v0.29.0" "cannot access socket"
	silent "is not on this host"
	rm "$STATE/containerd-down"
	installs
	ok
	installs DOCKER_VERSION=20.10
	ok
}

# A request that fails does not mean that the object is missing: the hook would then create a second default
# StorageClass, or leave out Rook's permissions.
@test "an API failure is reported, and a second run repairs the installation" {
	touch "$STATE/cluster/namespace/"{kurl,rook-ceph}
	for call in kubectl "get configmap ekco-config" "get namespaces" "get deployment ekc-operator" "get storageclass"; do
		api_fails_at "$call"
		installs MINIO_VERSION=1 ROOK_VERSION=1.12.8 ROOK_MINIMUM_NODE_COUNT=3
		refused "run the installer again" "refused"
		not_called "kubectl apply"
	done
	for call in "apply -k" "label namespace rook-ceph" "get nodes"; do
		api_fails_at "$call"
		installs ROOK_VERSION=1.12.8
		refused "run the installer again" "refused"
	done
	rm "$STATE/api-fails"
	installs
	ok
	has "node_unreachable_toleration: 5m"
}

@test "a full disk is reported, and a second run repairs the installation" {
	mkdir -p kustomize/ekco
	ln -s /dev/full kustomize/ekco/config.yaml
	installs KEEP_KUSTOMIZE=1
	refused "Cannot write ./kustomize/ekco/config.yaml" "No space left"
	not_called "kubectl apply"
	ln -s /dev/full "$EKCO_HOST_BIN/ekco-purge-node"
	installs
	refused "Cannot write $EKCO_HOST_BIN/ekco-purge-node"
	rm "$EKCO_HOST_BIN/ekco-purge-node"
	installs
	ok
}

@test "the hook writes through symbolic links" {
	mkdir elsewhere
	mv kustomize/ekco . 2>/dev/null || mkdir ekco
	ln -s "$PWD/ekco" kustomize/ekco
	ln -s "$PWD/elsewhere/purge" "$EKCO_HOST_BIN/ekco-purge-node"
	installs KEEP_KUSTOMIZE=1
	ok
	[ -L "$EKCO_HOST_BIN/ekco-purge-node" ] && [ -x elsewhere/purge ]
	[ -L kustomize/ekco ] && [ -e ekco/kustomization.yaml ]
}

@test "a read-only directory is reported" {
	export EKCO_HOST_BIN
	run unshare --mount sh -c 'mount --bind "$EKCO_HOST_BIN" "$EKCO_HOST_BIN" && mount -o remount,bind,ro "$EKCO_HOST_BIN" && installer.sh install'
	refused "Cannot write $EKCO_HOST_BIN/ekco-purge-node" "Read-only file system"
	run unshare --mount sh -c 'mount --bind kustomize kustomize && mount -o remount,bind,ro kustomize && KEEP_KUSTOMIZE=1 installer.sh install'
	refused "Cannot write ./kustomize/ekco" "Read-only file system"
}

@test "only root can read the token in the kustomize directory" {
	# World-readable, as kURL creates it and as an earlier version left it.
	mkdir -p kustomize/ekco
	chmod 755 kustomize/ekco
	for keep in '' 1; do
		installs KEEP_KUSTOMIZE=$keep
		ok
		[ "$(stat -c %a kustomize/ekco)" = 700 ] || fails "$(stat -c %a kustomize/ekco)"
	done
}

@test "a container of a killed installer is replaced" {
	mkdir -p "$STATE/containers"
	touch "$STATE/containers/check-config"
	installs
	ok
}
