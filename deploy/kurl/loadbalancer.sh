#!/bin/bash
# The hooks that set up the internal load balancer, and those for a change of the load balancer's address. install.sh
# sources this file, and defines the other functions that it calls. An assignment outside a function would overwrite
# what ekco_pre_init has set.

# --- Internal load balancer -------------------------------------------------------------------------------------

function ekco_bootstrap_internal_lb() {
    ekco_needs bail commandExists kubernetes_is_master log logStep sleep_spinner spinner_until
    local manifest=$EKCO_HOST_ETC/kubernetes/manifests/haproxy.yaml before='' serves='' primaries
    primaries=$(ekco_lb_primaries)
    logStep "Setting up the internal load balancer"
    ekco_needs_image "$(ekco_image host_task_image)" ekco
    # Without network access, the kubelet cannot pull HAProxy's image.
    if [ "${AIRGAP:-}" = 1 ]; then ekco_needs_image "$(ekco_image internal_load_balancer_haproxy_image)" haproxy; fi
    if [ -e "$manifest" ]; then
        before=$(stat --format=%y "$manifest")
        if ekco_lb_answers; then serves=1; fi
    fi
    # A killed installer can leave this file without a server. The running HAProxy still serves, but would not start again.
    if [ -n "$serves" ] && [ -n "$primaries" ] && ! grep -qs '^ *server ' "$EKCO_HOST_ETC/haproxy/haproxy.cfg"; then
        ekco_lb_write_config "$primaries"
        ekco_lb_rewrite_later
    fi
    # If the content is the same, ekco does not write the file, and the modification time stays.
    ekco_run haproxy-manifest "$EKCO_HOST_ETC:/host/etc" generate-haproxy-manifest \
        --file=/host/etc/kubernetes/manifests/haproxy.yaml --image="$(ekco_image internal_load_balancer_haproxy_image)" ||
        ekco_bail "EKCO cannot write $manifest. Fix the error above and run the installer again."
    ekco_lb_readable
    if [ -n "$serves" ]; then
        if [ "$(stat --format=%y "$manifest")" != "$before" ]; then
            log "The kubelet restarts the load balancer, because its manifest has changed"
            sleep_spinner 60
        fi
        ekco_until 300 ekco_lb_answers ||
            ekco_bail "The load balancer does not answer at https://localhost:6444/healthz after 5 minutes. Look at its pod (kubectl -n kube-system get pods -l app=kurl-haproxy), then run the installer again."
        return 0
    fi
    if [ -z "$primaries" ]; then return 0; fi
    ekco_lb_write_config "$primaries"
    ekco_lb_start_temporary
    ekco_lb_rewrite_later
}

# ekco_lb_rewrite_later makes EKCO write HAProxy's configuration on all nodes again, by deleting a ConfigMap. The API may
# not answer yet.
function ekco_lb_rewrite_later() {
    if kubernetes_is_master && commandExists kubectl; then
        kubectl --request-timeout=10s -n kurl delete configmap update-internallb --ignore-not-found >/dev/null 2>&1 || true
    fi
}

function ekco_cleanup_bootstrap_internal_lb() { ekco_remove_container bootstrap-lb; }

# ekco_lb_primaries prints the primaries' addresses: kURL's list or, on the first primary, the host's own address.
function ekco_lb_primaries() {
    if [ -n "${PRIMARY_HOST:-}" ]; then
        echo "$PRIMARY_HOST"
    elif [ "${MASTER:-}" = 1 ]; then
        echo "${PRIVATE_ADDRESS:-}"
    fi
}

function ekco_lb_answers() {
    curl --silent --output /dev/null --fail --insecure --noproxy '*' --max-time 5 https://localhost:6444/healthz
}

function ekco_lb_write_config() {
    local file=$EKCO_HOST_ETC/haproxy/haproxy.cfg config
    config=$(ekco_run haproxy-config '' generate-haproxy-config --primary-host="$1") || config=''
    [ -n "$config" ] || ekco_bail "EKCO cannot generate $file for the primaries $1. Fix the error above and run the installer again."
    ekco_save "$file.new" printf '%s\n' "$config"
    if cmp -s "$file.new" "$file"; then
        rm -f "$file.new"
    # HAProxy's pod mounts this file, and would not see a file that replaces it. So write into it. If that fails, for
    # example because the disk is full, replace the file: it must not stay empty or truncated.
    elif [ -e "$file" ] && cat "$file.new" >"$file" && cmp -s "$file.new" "$file"; then
        rm -f "$file.new"
    else
        mv -fT "$file.new" "$file" || ekco_cannot_write "$file"
    fi
    ekco_lb_readable
}

# ekco_lb_readable makes the configuration readable for HAProxy, which does not run as root, even if the umask is 027.
# Other files in the directory keep their modes, because they may be private keys.
function ekco_lb_readable() {
    local dir=$EKCO_HOST_ETC/haproxy
    if [ -d "$dir" ]; then
        chmod a+rx "$dir" || ekco_cannot_write "$dir"
    fi
    if [ -e "$dir/haproxy.cfg" ]; then
        chmod a+r "$dir/haproxy.cfg" || ekco_cannot_write "$dir/haproxy.cfg"
    fi
}

# ekco_lb_start_temporary runs HAProxy in container bootstrap-lb, until ekco_cleanup_bootstrap_internal_lb removes it.
function ekco_lb_start_temporary() {
    local image from=$EKCO_HOST_ETC/haproxy to=/usr/local/etc/haproxy started=1
    image=$(ekco_image internal_load_balancer_haproxy_image)
    ekco_needs_image "$image" haproxy
    ekco_remove_container bootstrap-lb
    if ekco_has_docker; then
        docker run --detach --rm --name bootstrap-lb --publish 6444:6444 --volume "$from:$to:ro" "$image" >/dev/null || started=0
    else
        ekco_ctr run --detach --net-host --mount "type=bind,src=$from,dst=$to,options=rbind:ro" \
            "$(ekco_full_name "$image")" bootstrap-lb </dev/null || started=0
    fi
    if [ $started = 0 ]; then
        ekco_bail "Cannot start HAProxy in container bootstrap-lb. Fix the error above and run the installer again."
    fi
}

# --- Change of the load balancer's address ----------------------------------------------------------------------

# kURL calls the next two hooks with the old and the new address. Either may be empty.
function ekco_handle_load_balancer_address_change_pre_init() {
    ekco_needs bail cert_has_san kubernetes_pod_completed kubernetes_pod_started logStep logWarn spinner_until
    local host node address
    if ! ekco_host_differs "${1:-}" "${2:-}"; then return 0; fi
    host=$(ekco_host "$2")
    ekco_needs_host_name "$host"
    for node in "${KUBERNETES_REMOTE_PRIMARIES[@]}"; do
        logStep "Adding $host to the API server's certificate on $node"
        ekco_regenerate_certificate "$node" "--add-alt-names=$host"
    done
    for node in "${KUBERNETES_REMOTE_PRIMARIES[@]}"; do
        # Not every host can resolve the names of nodes.
        address=$(kubectl get node "$node" -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}') || address=''
        address=$(ekco_url_host "${address:-$node}")
        ekco_until 120 cert_has_san "$address:6443" "$host" ||
            ekco_warn "The API server at $address:6443 does not serve a certificate for $host after 2 minutes. If clients refuse its certificate later, run the installer again."
    done
}

function ekco_handle_load_balancer_address_change_post_init() {
    ekco_needs bail kubernetes_pod_completed kubernetes_pod_started logStep spinner_until
    local host node
    if ! ekco_host_differs "${1:-}" "${2:-}"; then return 0; fi
    host=$(ekco_host "$1")
    ekco_needs_host_name "$host"
    for node in "${KUBERNETES_REMOTE_PRIMARIES[@]}"; do
        logStep "Removing $host from the API server's certificate on $node"
        ekco_regenerate_certificate "$node" "--drop-alt-names=$host"
    done
}

# EKCO also restarts the kubelet of the node that it runs on. That breaks "kubectl exec", but the command in the pod
# continues. So the command writes its result to a file in the pod, and this hook reads that file.
function ekco_handle_load_balancer_address_change_kubeconfigs() {
    ekco_needs bail get_local_node_name logStep logSuccess spinner_until
    local log=/tmp/change-lb-log node options result
    node=$(get_local_node_name)
    if ekco_is_on "${EKCO_ENABLE_INTERNAL_LOAD_BALANCER:-}"; then
        ekco_needs_host_name "$node"
        options="--exclude=$node --internal --server=https://localhost:6444"
    else
        ekco_needs_host_name "$node" "${API_SERVICE_ADDRESS:-}"
        options="--exclude=$node --server=https://$(ekco_url_host "$API_SERVICE_ADDRESS")"
    fi
    logStep "Pointing the kubelets of the other nodes to the load balancer's new address"
    # The file may have the result of an earlier change.
    ekco_exec 30 /bin/bash -c ": >$log" || ekco_api_failed "run a command in EKCO's pod"
    # If the connection hangs, end it and read the result.
    ekco_exec 120 /bin/bash -c "ekco change-load-balancer $options &>$log" || true
    ekco_until 600 ekco_lb_change_ended ||
        ekco_bail "EKCO has not pointed all kubelets to the new address within 10 minutes. To see why, run kubectl -n kurl exec deploy/ekc-operator -- ekco status. Fix that and run the installer again."
    result=$(ekco_exec 10 cat $log) || ekco_api_failed "read $log in EKCO's pod"
    case $result in
    *'Result: success'*) logSuccess "All kubelets use the new address" ;;
    *) ekco_bail "EKCO has not pointed all kubelets to the new address: $result" ;;
    esac
}

function ekco_lb_change_ended() {
    ekco_exec 10 cat /tmp/change-lb-log 2>/dev/null | grep -q 'Result:'
}

# ekco_exec SECONDS COMMAND... runs a command in EKCO's pod, for at most this time.
function ekco_exec() {
    timeout --foreground "$1" kubectl -n kurl exec deploy/ekc-operator --container ekc-operator -- "${@:2}"
}

# ekco_host_differs OLD NEW reports whether both are set and have different hosts.
function ekco_host_differs() {
    [ -n "$1" ] && [ -n "$2" ] && [ "$(ekco_host "$1")" != "$(ekco_host "$2")" ]
}

# ekco_host ADDRESS prints the host in ADDRESS, which is HOST, HOST:PORT, IPV6, [IPV6] or [IPV6]:PORT.
function ekco_host() {
    case $1 in
    '['*']'*) set -- "${1#\[}" && echo "${1%%]*}" ;;
    *:*:*) echo "$1" ;;
    *) echo "${1%%:*}" ;;
    esac
}

# ekco_needs_host_name NAME... ends the installer if a name is empty, or has a character that a host name or an IP
# address cannot have. The hooks insert the names into commands and YAML.
function ekco_needs_host_name() {
    local name
    for name in "$@"; do
        case $name in
        '' | *[!]A-Za-z0-9.:_[-]*) ekco_bail "\"$name\" is not a host name or an IP address. Correct the load balancer's address and run the installer again." ;;
        esac
    done
}

# ekco_regenerate_certificate NODE OPTION changes the API server's certificate on a node. The API server reads the
# new one without a restart.
function ekco_regenerate_certificate() {
    local pod=regen-cert-$1 phase
    kubectl -n default delete pod "$pod" --ignore-not-found --force --grace-period=0 >/dev/null 2>&1 || true
    sed "s#__NODE__#$1#g; s#__OPTION__#$2#; s#__IMAGE__#$(ekco_image host_task_image)#" "$(ekco_addon_dir)/templates/regen-cert.yaml" |
        kubectl -n default create -f - >/dev/null || ekco_api_failed "create pod default/$pod"
    ekco_until 120 kubernetes_pod_started "$pod" default ||
        ekco_bail "Pod default/$pod has not started within 2 minutes. To see why, run kubectl -n default describe pod $pod. Fix that and run the installer again."
    # The connection to the kubelet may hang.
    timeout --foreground 120 kubectl -n default logs --follow "$pod" || true
    ekco_until 10 kubernetes_pod_completed "$pod" default || true
    phase=$(kubectl -n default get pod "$pod" -o jsonpath='{.status.phase}') || ekco_api_failed "read pod default/$pod"
    if [ "$phase" != Succeeded ]; then
        ekco_bail "Pod default/$pod did not succeed (phase $phase), so the API server's certificate on $1 may be unchanged. The pod's log is above. Fix the error and run the installer again."
    fi
    kubectl -n default delete pod "$pod" >/dev/null || true
}
