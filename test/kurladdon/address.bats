load world

changes() { run env REMOTE_PRIMARIES="primary-2 primary-3" installer.sh call "ekco_handle_load_balancer_address_change_$1" "${@:2}"; }

@test "ekco_host finds the host in every form of address" {
	while read -r address host; do
		run installer.sh call ekco_host "$address"
		[ "$output" = "$host" ] || fails "$address"
	done <<-'END'
		10.0.0.1:6443 10.0.0.1
		lb.example lb.example
		lb.example:6443 lb.example
		[fd00::1]:6443 fd00::1
		[fd00::1] fd00::1
		fd00::1 fd00::1
		localhost:6444 localhost
	END
}

@test "an address change does nothing without an old address or with the same host" {
	changes pre_init lb.example
	ok
	changes pre_init lb.example:6443 lb.example:8443
	ok
	changes post_init "[fd00::1]:6443" fd00::1
	ok
	changes post_init
	ok
	not_called kubectl
}

@test "the new host is added to the certificates of the other primaries" {
	# The host may not resolve the names of nodes.
	printf '%s\n' "10.0.0.2:6443 fd00::7" "[fd00::3]:6443 fd00::7" >"$STATE/sans"
	changes pre_init lb.example:6443 "[fd00::7]:6443"
	ok
	silent WARN
	for node in primary-2 primary-3; do
		pod=$STATE/created-regen-cert-$node
		grep -qx "  namespace: default" "$pod"
		grep -qx "    kubernetes.io/hostname: \"$node\"" "$pod"
		grep -qx "    - operator: Exists" "$pod"
		grep -qx "      image: replicated/ekco:v0.29.0" "$pod"
		grep -qx '      command: \[ekco, regen-cert, "--add-alt-names=fd00::7"\]' "$pod"
		! grep __ "$pod"
		grep -qx "  restartPolicy: Never" "$pod"
		grep -qx "      imagePullPolicy: IfNotPresent" "$pod"
		grep -qx "          mountPath: /etc/kubernetes" "$pod"
		grep -qx "        path: /etc/kubernetes" "$pod"
		# The log ends before the pod has its last phase.
		called "spinner_until 10 ekco_succeeds_or_late kubernetes_pod_completed regen-cert-$node default"
		called "kubectl -n default logs --follow regen-cert-$node"
		[ ! -e "$STATE/cluster/pod/regen-cert-$node" ]
	done
	called "spinner_until 120 ekco_succeeds_or_late cert_has_san [fd00::3]:6443 fd00::7"
}

@test "a certificate without the new host causes only a warning" {
	changes pre_init lb.example new.example
	ok
	says "WARN The API server at 10.0.0.2:6443 does not serve a certificate for new.example"
}

@test "the old host is removed from the certificates after the change" {
	changes post_init lb.example:6443 localhost:6444
	ok
	grep -qx '      command: \[ekco, regen-cert, "--drop-alt-names=lb.example"\]' "$STATE/created-regen-cert-primary-3"
	not_called cert_has_san
}

@test "a certificate pod that fails or does not start ends the installer" {
	echo Failed >"$STATE/phase"
	changes pre_init a b
	refused "did not succeed (phase Failed)" "run the installer again"
	[ ! -e "$STATE/created-regen-cert-primary-3" ]
	echo Pending >"$STATE/phase"
	changes pre_init a b
	refused "Pod default/regen-cert-primary-2 has not started within 2 minutes"
	# A failed request does not mean that the pod failed.
	echo Succeeded >"$STATE/phase"
	printf '#!/bin/sh\necho "get pod" >"$STATE/api-fails"\n' >"$STATE/logs"
	chmod +x "$STATE/logs"
	changes pre_init a b
	refused "Cannot read pod default/regen-cert-primary-2"
	# The next run replaces the pod that the failed run left.
	rm "$STATE/logs" "$STATE/api-fails"
	echo Succeeded >"$STATE/phase"
	changes pre_init a b
	ok
}

@test "a log that hangs does not block the installer" {
	printf '#!/bin/sh\nexec sleep 600\n' >"$STATE/logs"
	chmod +x "$STATE/logs"
	touch "$STATE/hangs"
	run /usr/bin/timeout 60 env REMOTE_PRIMARIES=primary-2 installer.sh call ekco_handle_load_balancer_address_change_pre_init a b
	ok
	called "timeout --foreground 120 kubectl -n default logs --follow regen-cert-primary-2"
}

@test "a host with shell characters is refused" {
	changes pre_init a 'b"]; $(touch pwned)'
	refused 'is not a host name or an IP address'
	changes post_init 'a"]; $(touch pwned)' b
	refused 'is not a host name or an IP address'
	not_called "kubectl -n default create"
	[ ! -e pwned ]
}

# pod COMMAND creates a fake of EKCO's pod. For "ekco change-load-balancer" it runs COMMAND; /tmp/change-lb-log is
# $STATE/log.
pod() {
	cat >"$STATE/pod" <<-END
		#!/bin/bash
		echo "\$*" >>"$STATE/pod-calls"
		case "\$*" in
		*": >/tmp"*) : >"$STATE/log" ;;
		*change-load-balancer*) $1 ;;
		cat*) cat "$STATE/log" ;;
		esac
	END
	chmod +x "$STATE/pod"
}

@test "kubelets get the new address even if kubectl exec breaks" {
	pod "echo 'Result: success' >$STATE/log; exit 137"
	changes kubeconfigs
	refused "is not a host name or an IP address" # neither load balancer is set
	run env API_SERVICE_ADDRESS="[fd00::7]:6443" installer.sh call ekco_handle_load_balancer_address_change_kubeconfigs
	ok
	grep -qxF '/bin/bash -c ekco change-load-balancer --exclude=primary-1 --server=https://[fd00::7]:6443 &>/tmp/change-lb-log' "$STATE/pod-calls"
	run env API_SERVICE_ADDRESS=fd00::7 installer.sh call ekco_handle_load_balancer_address_change_kubeconfigs
	ok
	grep -qF -e '--server=https://[fd00::7] ' "$STATE/pod-calls"
	run env EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 installer.sh call ekco_handle_load_balancer_address_change_kubeconfigs
	ok
	grep -qxF '/bin/bash -c ekco change-load-balancer --exclude=primary-1 --internal --server=https://localhost:6444 &>/tmp/change-lb-log' "$STATE/pod-calls"
}

@test "a hanging connection to EKCO's pod does not block the installer" {
	pod "echo 'Result: success' >$STATE/log; exec sleep 600"
	touch "$STATE/hangs"
	run /usr/bin/timeout 60 env EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 installer.sh call ekco_handle_load_balancer_address_change_kubeconfigs
	ok
	called "timeout --foreground 120 kubectl -n kurl exec"
	# The requests for the result have limits, too.
	pod ":"
	sed -i 's/^cat.*/cat*) exec sleep 600 ;;/' "$STATE/pod"
	run /usr/bin/timeout 120 env KURL_STEP=300 EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 installer.sh call ekco_handle_load_balancer_address_change_kubeconfigs
	refused "within 10 minutes"
}

@test "a failed change of kubelets ends the installer with EKCO's reason" {
	pod "echo 'Result: node worker-1 does not answer' >$STATE/log"
	run env EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 installer.sh call ekco_handle_load_balancer_address_change_kubeconfigs
	refused "Result: node worker-1 does not answer"
}

@test "the result of an earlier change is ignored" {
	echo 'Result: success' >"$STATE/log"
	pod ":"
	run env EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 installer.sh call ekco_handle_load_balancer_address_change_kubeconfigs
	refused "within 10 minutes"
	rm "$STATE/pod"
	run env EKCO_ENABLE_INTERNAL_LOAD_BALANCER=1 installer.sh call ekco_handle_load_balancer_address_change_kubeconfigs
	refused "Cannot run a command in EKCO's pod"
}
