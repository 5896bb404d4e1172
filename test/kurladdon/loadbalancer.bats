load world

manifest=kubernetes/manifests/haproxy.yaml

# bootstrapped makes the host look as if the kubelet runs HAProxy: with its manifest, and with an answer on its port.
bootstrapped() {
	mkdir -p "$EKCO_HOST_ETC/haproxy"
	[ -e "$EKCO_HOST_ETC/$manifest" ] || run installer.sh call ekco_bootstrap_internal_lb
	[ -e "$EKCO_HOST_ETC/haproxy/haproxy.cfg" ] || printf 'backend x\n    server primary 10.0.0.9:6443\n' >"$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	touch "$STATE/lb-answers"
	: >"$STATE/calls"
}

bootstraps() { run env "$@" installer.sh call ekco_bootstrap_internal_lb; }

@test "the first primary gets a temporary load balancer" {
	installs EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 PRIVATE_ADDRESS=10.0.0.1
	ok
	grep -qx HA_CLUSTER=1 "$STATE/variables"
	grep -qx LOAD_BALANCER_ADDRESS=localhost "$STATE/variables"
	grep -qx LOAD_BALANCER_PORT=6444 "$STATE/variables"
	grep -q 'server k8s-primary-0 10.0.0.1:6443' "$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	grep -q 'haproxy:3.4.2-alpine3.24' "$EKCO_HOST_ETC/$manifest"
	called "run --detach --net-host --mount type=bind,src=$EKCO_HOST_ETC/haproxy,dst=/usr/local/etc/haproxy,options=rbind:ro docker.io/library/haproxy:3.4.2-alpine3.24 bootstrap-lb"
	not_called "sleep_spinner"
	[ ! -e "$STATE/containers/bootstrap-lb" ] # the cleanup hook removed it
	has "enable_internal_load_balancer: true"
}

@test "without the field there is no load balancer" {
	installs PRIVATE_ADDRESS=10.0.0.1
	ok
	grep -qx HA_CLUSTER= "$STATE/variables"
	[ -z "$(find "$EKCO_HOST_ETC" -type f)" ]
}

@test "a second primary that joins gets the addresses that kURL passes, not its own" {
	run env EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 MASTER=1 PRIMARY_HOST=10.0.0.1 PRIVATE_ADDRESS=10.0.0.2 installer.sh join
	ok
	grep -q '10.0.0.1:6443' "$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	! grep '10.0.0.2:6443' "$EKCO_HOST_ETC/haproxy/haproxy.cfg"
}

@test "with Docker the temporary load balancer publishes its port" {
	bootstraps DOCKER_VERSION=20.10 PRIMARY_HOST=10.0.0.1,fd00::2
	ok
	called "docker run --detach --rm --name bootstrap-lb --publish 6444:6444 --volume $EKCO_HOST_ETC/haproxy:/usr/local/etc/haproxy:ro haproxy:3.4.2-alpine3.24"
	grep -q '10.0.0.1:6443' "$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	grep -q 'fd00::2' "$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	run env DOCKER_VERSION=20.10 installer.sh call ekco_cleanup_bootstrap_internal_lb
	ok
	[ ! -e "$STATE/containers/bootstrap-lb" ]
}

@test "an unchanged manifest keeps its modification time" {
	bootstrapped
	touch -d 2020-01-01 "$EKCO_HOST_ETC/$manifest"
	bootstraps PRIMARY_HOST=10.0.0.1
	ok
	[ "$(stat -c %Y "$EKCO_HOST_ETC/$manifest")" = "$(date -d 2020-01-01 +%s)" ]
	not_called sleep_spinner
	[ ! -e "$STATE/containers/bootstrap-lb" ]
	grep -q 10.0.0.9 "$EKCO_HOST_ETC/haproxy/haproxy.cfg" # EKCO keeps it current
}

@test "a truncated configuration is written again while HAProxy still answers" {
	bootstrapped
	: >"$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	bootstraps
	ok
	[ ! -s "$EKCO_HOST_ETC/haproxy/haproxy.cfg" ] # the primaries are unknown
	touch "$STATE/cluster/configmap/update-internallb" "$EKCO_HOST_ETC/kubernetes/manifests/kube-apiserver.yaml"
	bootstraps PRIMARY_HOST=10.0.0.1
	ok
	grep -q 'server k8s-primary-0 10.0.0.1:6443' "$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	[ ! -e "$STATE/containers/bootstrap-lb" ]
	[ ! -e "$STATE/cluster/configmap/update-internallb" ]
}

@test "a wait ends with the first success" {
	printf '#!/bin/sh\n[ ! -e succeeded ] && touch succeeded\n' >once
	chmod +x once
	run installer.sh call ekco_until 60 ./once
	ok
	run installer.sh call ekco_until 60 ./once
	[ "$status" -ne 0 ]
}

@test "a wait ends when its time is over, however few attempts that was" {
	run timeout 30 env KURL_STEP=0 KURL_SLEEP=0.2 installer.sh call ekco_until 1 false
	[ "$status" -eq 1 ] || fails "exit code $status"
}

@test "without network access a missing image of HAProxy is reported before the manifest is written" {
	bootstrapped
	sed -i 's/haproxy:3.4.2/haproxy:2.9.1/' "$EKCO_HOST_ETC/$manifest"
	sed -i /haproxy/d "$STATE/images"
	bootstraps AIRGAP=1
	refused "Image docker.io/library/haproxy:3.4.2-alpine3.24 is not on this host"
	grep -q 'haproxy:2.9.1' "$EKCO_HOST_ETC/$manifest"
	bootstraps
	ok
}

@test "a changed manifest is written, and the hook waits for the kubelet" {
	bootstrapped
	sed -i 's/haproxy:3.4.2/haproxy:2.9.1/' "$EKCO_HOST_ETC/$manifest"
	bootstraps
	ok
	grep -q 'haproxy:3.4.2' "$EKCO_HOST_ETC/$manifest"
	called "sleep_spinner 60"
	called "spinner_until 300 ekco_succeeds_or_late ekco_lb_answers"
	# An error of HAProxy is no answer, and a proxy must not answer for it.
	called "curl --silent --output /dev/null --fail --insecure --noproxy * --max-time 5 https://localhost:6444/healthz"
}

@test "without a primary the hook writes no configuration" {
	mkdir -p "$EKCO_HOST_ETC/haproxy"
	echo old >"$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	bootstraps PRIVATE_ADDRESS=10.0.0.9
	ok
	[ "$(cat "$EKCO_HOST_ETC/haproxy/haproxy.cfg")" = old ]
	[ -e "$EKCO_HOST_ETC/$manifest" ] && [ ! -e "$STATE/containers/bootstrap-lb" ]
}

@test "an invalid primary leaves the configuration unchanged" {
	mkdir -p "$EKCO_HOST_ETC/haproxy"
	echo old >"$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	bootstraps PRIMARY_HOST='not an address'
	refused "cannot generate $EKCO_HOST_ETC/haproxy/haproxy.cfg" "run the installer again"
	[ "$(cat "$EKCO_HOST_ETC/haproxy/haproxy.cfg")" = old ]
}

@test "HAProxy can read the configuration under umask 027, and the inode stays" {
	umask 027
	bootstraps PRIMARY_HOST=10.0.0.1
	ok
	[ "$(stat -c %a "$EKCO_HOST_ETC/haproxy" "$EKCO_HOST_ETC/haproxy/haproxy.cfg" | xargs)" = "755 644" ] || fails "$(ls -la "$EKCO_HOST_ETC/haproxy")"
	inode=$(stat -c %i "$EKCO_HOST_ETC/haproxy/haproxy.cfg")
	bootstraps PRIMARY_HOST=10.0.0.1,10.0.0.2
	ok
	[ "$inode" = "$(stat -c %i "$EKCO_HOST_ETC/haproxy/haproxy.cfg")" ]
}

@test "the configuration of a running load balancer becomes readable" {
	bootstrapped
	(umask 077 && mkdir -p "$EKCO_HOST_ETC/haproxy" && touch "$EKCO_HOST_ETC/haproxy/haproxy.cfg")
	chmod 700 "$EKCO_HOST_ETC/haproxy"
	bootstraps
	ok
	[ "$(stat -c %a "$EKCO_HOST_ETC/haproxy" "$EKCO_HOST_ETC/haproxy/haproxy.cfg" | xargs)" = "755 644" ] || fails "$(ls -la "$EKCO_HOST_ETC/haproxy")"
}

@test "an unchanged configuration keeps its modification time" {
	bootstraps PRIMARY_HOST=10.0.0.1
	touch -d 2020-01-01 "$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	bootstraps PRIMARY_HOST=10.0.0.1
	ok
	[ "$(stat -c %Y "$EKCO_HOST_ETC/haproxy/haproxy.cfg")" = "$(date -d 2020-01-01 +%s)" ]
	[ "$(ls "$EKCO_HOST_ETC/haproxy")" = haproxy.cfg ]
}

@test "a full disk leaves the configuration as it was" {
	mkdir -p "$EKCO_HOST_ETC/haproxy"
	# The disk has two pages, which are in use. The new configuration needs more than one.
	run unshare --mount sh -c '
		mount -t tmpfs -o size=8k tmpfs "$EKCO_HOST_ETC/haproxy" && cd "$EKCO_HOST_ETC/haproxy" &&
		echo old >haproxy.cfg && echo other >other && cd - &&
		! PRIMARY_HOST=$(seq -s , -f 10.0.0.%g 1 200) installer.sh call ekco_bootstrap_internal_lb && cat "$EKCO_HOST_ETC/haproxy/haproxy.cfg"'
	[ "$status" -eq 0 ] && [ "${lines[${#lines[@]} - 1]}" = old ] || fails "the configuration has changed"
	says "Cannot write $EKCO_HOST_ETC/haproxy/haproxy.cfg"
	says "No space left"
}

@test "private keys next to the configuration keep their modes" {
	mkdir -p "$EKCO_HOST_ETC/haproxy/keys"
	touch "$EKCO_HOST_ETC/haproxy/tls.pem" "$EKCO_HOST_ETC/haproxy/keys/ca.key"
	chmod 700 "$EKCO_HOST_ETC/haproxy/keys"
	chmod 600 "$EKCO_HOST_ETC/haproxy/tls.pem" "$EKCO_HOST_ETC/haproxy/keys/ca.key"
	modes() { stat -c '%a %n' "$EKCO_HOST_ETC"/haproxy/{tls.pem,keys,keys/ca.key}; }
	before=$(modes)
	bootstraps PRIMARY_HOST=10.0.0.1
	ok
	[ "$before" = "$(modes)" ] || fails "$(modes)"
	# If HAProxy's pod already runs, the hook takes another path.
	bootstrapped
	bootstraps PRIMARY_HOST=10.0.0.1
	ok
	[ "$before" = "$(modes)" ] || fails "$(modes)"
}

@test "on a primary the hook deletes ConfigMap update-internallb" {
	touch "$STATE/cluster/configmap/update-internallb"
	bootstraps PRIMARY_HOST=10.0.0.1
	[ -e "$STATE/cluster/configmap/update-internallb" ]
	touch "$EKCO_HOST_ETC/kubernetes/manifests/kube-apiserver.yaml"
	bootstraps PRIMARY_HOST=10.0.0.1
	ok
	[ ! -e "$STATE/cluster/configmap/update-internallb" ]
	api_fails_at kubectl
	bootstraps PRIMARY_HOST=10.0.0.1
	ok
}

@test "a load balancer that does not start is reported" {
	for runtime in ctr docker; do
		printf '#!/bin/bash\n[[ $* != *"run --detach "* ]] || exit 1\nexec "%s/fakes/%s" "$@"\n' "$BATS_TEST_DIRNAME" $runtime >$runtime
		chmod +x $runtime
	done
	for docker in '' 20.10; do
		PATH=$PWD:$PATH bootstraps PRIMARY_HOST=10.0.0.1 DOCKER_VERSION=$docker
		refused "Cannot start HAProxy in container bootstrap-lb"
	done
}

@test "a manifest that cannot be written is reported" {
	rm -r "$EKCO_HOST_ETC/kubernetes/manifests"
	touch "$EKCO_HOST_ETC/kubernetes/manifests"
	bootstraps PRIMARY_HOST=10.0.0.1
	refused "EKCO cannot write $EKCO_HOST_ETC/$manifest"
	[ ! -e "$STATE/containers/bootstrap-lb" ]
}

@test "a load balancer that stops answering is reported" {
	bootstrapped
	# It answers once, before the manifest is written.
	cat >curl <<-'END'
		#!/bin/bash
		[ -e "$STATE/lb-answers" ] && rm "$STATE/lb-answers"
	END
	chmod +x curl
	PATH=$PWD:$PATH bootstraps
	refused "does not answer at https://localhost:6444/healthz after 5 minutes"
}

@test "the message about a missing image names its archive" {
	cp "$STATE/images" images
	sed -i /ekco/d "$STATE/images"
	bootstraps PRIMARY_HOST=10.0.0.1
	refused "docker.io/replicated/ekco:v0.29.0 is not on this host" "ekco.tar.gz"
	cp images "$STATE/images"
	sed -i /haproxy/d "$STATE/images"
	bootstraps PRIMARY_HOST=10.0.0.1
	refused "docker.io/library/haproxy:3.4.2-alpine3.24 is not on this host" "haproxy.tar.gz"
}

@test "a node that joins bootstraps the load balancer, without ekco_pre_init" {
	run env EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 PRIMARY_HOST=10.0.0.1,10.0.0.2 installer.sh join
	ok
	grep -q '10.0.0.2:6443' "$EKCO_HOST_ETC/haproxy/haproxy.cfg"
	[ -e "$STATE/containers/bootstrap-lb" ]
	# kURL calls the hook again in an upgrade, when the kubelet runs HAProxy.
	touch "$STATE/lb-answers"
	: >"$STATE/calls"
	run env EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 installer.sh join
	ok
	not_called bootstrap-lb
}

@test "an IPv6 address of the operator has brackets" {
	echo "fd00::1 10.0.0.1" >"$STATE/addresses"
	run installer.sh call ekco_post_init
	ok
	grep -qx 'EKCO_ADDRESS=\[fd00::1\]:31880' "$STATE/variables"
	called '{.items[0].status.addresses[?(@.type=="InternalIP")].address}'
}
