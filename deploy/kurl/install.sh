#!/bin/bash
# EKCO's add-on for kURL. docs/install.md lists which setting each field of the installer sets.
#
# kURL sources this file twice: before ekco_pre_init, and again before ekco. An assignment outside a function would
# overwrite what ekco_pre_init has set. kURL's join.sh and upgrade.sh call ekco_join without ekco_pre_init. Hooks run as
# root under "set -eE" with a trap on ERR. The code must run in bash 4.2, which RHEL 7 has.

# Only tests set other directories.
: "${EKCO_HOST_ETC:=/etc}" "${EKCO_HOST_BIN:=/usr/local/bin}"

# The load balancer's hooks. This file, too, has only functions.
# shellcheck source=/dev/null
. "${BASH_SOURCE[0]%/*}/loadbalancer.sh"

# --- Hooks ------------------------------------------------------------------------------------------------------

function ekco_pre_init() {
    if ekco_is_on "${EKCO_ENABLE_INTERNAL_LOAD_BALANCER:-}"; then
        # kURL reads these variables.
        # shellcheck disable=SC2034
        HA_CLUSTER=1 LOAD_BALANCER_ADDRESS=localhost LOAD_BALANCER_PORT=6444
    fi
}

# kURL calls ekco in each run of the installer, also if the cluster already runs workloads.
function ekco() {
    ekco_needs bail kubernetes_resource_exists log logStep logSuccess logWarn spinner_until
    local from to=$DIR/kustomize/ekco
    from=$(ekco_addon_dir)
    logStep "Installing EKCO $EKCO_VERSION"
    ekco_needs_image "$(ekco_image host_task_image)" ekco
    # The files contain a secret: the token of the storage migration.
    { mkdir -p "$to" && chmod 700 "$to"; } || ekco_cannot_write "$to"
    ekco_read_live "$to"
    # One call for all namespaces, because each call of kubectl takes a fraction of a second.
    EKCO_NAMESPACES=$(kubectl get namespaces -o name) || ekco_api_failed "list namespaces"
    ekco_write_config "$from" "$to"
    ekco_check_config "$to"
    ekco_write_manifests "$from" "$to"
    ekco_check_unchanged
    kubectl apply -k "$to" || ekco_api_failed "apply the manifests in $to"
    ekco_label_rook
    ekco_install_purge_command "$from"
    ekco_wait_for_overrides
    logSuccess "EKCO $EKCO_VERSION is installed"
}

# kURL no longer calls this hook, but its conventions list it.
function ekco_already_applied() { ekco; }

# kURL's upgrade.sh calls ekco_join also on nodes that already run workloads.
function ekco_join() {
    ekco_needs bail kubernetes_is_master logStep
    if [ "${MASTER:-}" = 1 ] || kubernetes_is_master; then
        ekco_install_purge_command "$(ekco_addon_dir)"
    fi
    if ekco_is_on "${EKCO_ENABLE_INTERNAL_LOAD_BALANCER:-}"; then
        ekco_bootstrap_internal_lb
    fi
    ekco_load_override_images
}

function ekco_post_init() {
    ekco_needs bail kubernetes_get_control_plane_label
    local address
    address=$(kubectl get nodes --selector="$(kubernetes_get_control_plane_label)" \
        -o jsonpath='{.items[0].status.addresses[?(@.type=="InternalIP")].address}') ||
        ekco_api_failed "read the address of the first primary"
    # kURL prints this address in the join command.
    # shellcheck disable=SC2034
    EKCO_ADDRESS=$(ekco_url_host "$address"):31880
}

# ekco_url_host ADDRESS... prints the first address in the form that a URL needs: IPv6 in brackets.
function ekco_url_host() {
    case ${1%% *} in
    '['*) echo "$1" ;;
    *:*:*) echo "[${1%% *}]" ;;
    *) echo "${1%% *}" ;;
    esac
}

# --- Configuration ----------------------------------------------------------------------------------------------

# ekco_read_live DIR writes the configuration in the cluster to DIR/live, one key per line. The file is empty if the
# cluster has none. It also sets EKCO_LAST_KOTSADM: the value of enable_ha_kotsadm that followed from the installer's
# fields in its last run.
function ekco_read_live() {
    local live output code=0
    EKCO_LIVE_VERSION=$(ekco_live_version) || ekco_api_failed "read ConfigMap kurl/ekco-config"
    # $() removes newlines at the end. The "#", a comment in YAML, keeps them.
    live=$(kubectl -n kurl get configmap ekco-config --ignore-not-found \
        -o jsonpath='{.metadata.annotations.ekco\.kurl\.sh/enable-ha-kotsadm}{"\n"}{.data.config\.yaml}{"\n#"}') ||
        ekco_api_failed "read ConfigMap kurl/ekco-config"
    EKCO_LAST_KOTSADM=${live%%$'\n'*}
    ekco_save "$1/config.yaml" printf '%s\n' "${live#*$'\n'}"
    # An administrator may have written it in any style that YAML permits, so EKCO's own parser reads it.
    output=$(ekco_run flatten-config "$(cd "$1" && pwd):/kustomize" flatten-config /kustomize/config.yaml /kustomize/live 2>&1) || code=$?
    if [ $code = 2 ]; then
        ekco_bail "Cannot read the settings in ConfigMap kurl/ekco-config: $output. Nothing was applied. Correct them (kubectl -n kurl edit configmap ekco-config) and run the installer again."
    fi
    ekco_needs_run $code "$output"
}

function ekco_live_version() {
    kubectl -n kurl get configmap ekco-config --ignore-not-found -o jsonpath='{.metadata.resourceVersion}'
}

# ekco_check_unchanged ends the installer if the ConfigMap is no longer the one that ekco_read_live read.
function ekco_check_unchanged() {
    local version
    version=$(ekco_live_version) || ekco_api_failed "read ConfigMap kurl/ekco-config"
    [ "$version" = "$EKCO_LIVE_VERSION" ] ||
        ekco_bail "ConfigMap kurl/ekco-config was changed during this run. Nothing was applied. Run the installer again."
}

# ekco_write_config FROM TO writes TO/config.yaml. A key that ekco_settings prints gets that value. Any other key keeps
# its value in the cluster, or gets its default if the cluster has none.
function ekco_write_config() {
    local line
    ekco_save "$2/settings" ekco_settings "$2/live"
    # A control character makes the YAML invalid, and EKCO's error does not name the field.
    if line=$(LC_ALL=C grep -am 1 $'[\001-\010\013-\037]' "$2/settings"); then
        ekco_bail "$(ekco_field "${line%%:*}") has a control character. Nothing was applied. Correct the value and run the installer again."
    fi
    ekco_save "$2/merged" awk -f "$1/merge.awk" file=settings "$2/settings" file=live "$2/live" file=base "$1/templates/config.yaml"
    ekco_save "$2/config.yaml" sed '/^#/d' "$2/merged"
    sed -n 's/^#//p' "$2/merged" | while IFS= read -r line; do ekco_warn "$line"; done
    # kURL prints this token in the join command.
    # shellcheck disable=SC2034
    EKCO_AUTH_TOKEN=$(sed -n 's/^storage_migration_auth_token: *//p' "$2/config.yaml" | tr -d "\"' ")
}

# ekco_settings LIVE prints the keys that the installer sets in each run, in the order of deploy/configmap.yaml. kURL
# passes 0 and false as empty strings.
function ekco_settings() {
    local rook=${ROOK_VERSION:-} contour=${CONTOUR_VERSION:-} priority=''
    if [ "$rook" = 1.0.4 ]; then priority='node-critical'; fi
    ekco_set node_unreachable_toleration "${EKCO_NODE_UNREACHABLE_TOLERATION_DURATION:-5m}"
    ekco_set_unless "${EKCO_SHOULD_DISABLE_CLEAR_NODES:-}" clear_dead_nodes
    ekco_set_unless '' purge_dead_nodes "${EKCO_SHOULD_ENABLE_PURGE_NODES:-}"
    ekco_set min_ready_master_nodes "${EKCO_MIN_READY_MASTER_NODE_COUNT:-2}"
    ekco_set min_ready_worker_nodes "${EKCO_MIN_READY_WORKER_NODE_COUNT:-0}"
    ekco_set_unless "${EKCO_ROOK_SHOULD_USE_ALL_NODES:-}" maintain_rook_storage_nodes "$rook"
    ekco_set rook_storage_nodes "${ROOK_NODES:-}"
    ekco_set_unless "${EKCO_ROOK_SHOULD_DISABLE_RECONCILE_MDS_PLACEMENT:-}" reconcile_rook_mds_placement "$rook"
    ekco_set_unless "${EKCO_ROOK_SHOULD_DISABLE_RECONCILE_CEPH_CSI_RESOURCES:-}" reconcile_ceph_csi_resources "$rook"
    ekco_set rotate_certs_image "$(ekco_image rotate_certs_image)"
    ekco_set rook_priority_class "$priority"
    ekco_set host_task_image "$(ekco_image host_task_image)"
    ekco_set_unless '' enable_internal_load_balancer "${EKCO_ENABLE_INTERNAL_LOAD_BALANCER:-}"
    ekco_set internal_load_balancer_haproxy_image "$(ekco_image internal_load_balancer_haproxy_image)"
    ekco_set pod_image_overrides "${EKCO_POD_IMAGE_OVERRIDES:-}"
    ekco_set_unless "${EKCO_SHOULD_DISABLE_RESTART_FAILED_ENVOY_PODS:-}" restart_failed_envoy_pods "$contour"
    ekco_set envoy_pods_not_ready_duration "${EKCO_ENVOY_PODS_NOT_READY_DURATION:-5m}"
    ekco_set_unless "${EKCO_MINIO_SHOULD_DISABLE_MANAGEMENT:-}" enable_ha_minio "${MINIO_VERSION:-}" "${OPENEBS_LOCALPV:-}"
    ekco_set minio_namespace "$(ekco_minio_namespace)"
    ekco_set minio_util_image "${KURL_UTIL_IMAGE:-}"
    ekco_kotsadm "$1"
    ekco_set rook_minimum_node_count "${ROOK_MINIMUM_NODE_COUNT:-0}"
    ekco_set rook_ceph_image "${ROOK_CEPH_IMAGE:-}"
    ekco_set rook_storage_class "${STORAGE_CLASS:-distributed}"
    ekco_token "$1"
}

# ekco_set KEY VALUE prints "KEY: VALUE", with quotes if VALUE is not a plain word.
function ekco_set() {
    local plain='^[A-Za-z0-9]([A-Za-z0-9._/@:-]*[A-Za-z0-9])?$'
    if [[ $2 =~ $plain && ${2,,} != null ]]; then
        echo "$1: $2"
    elif [ -z "$2" ]; then
        echo "$1: \"\""
    else
        printf '%s: "%s"\n' "$1" "$(printf %s "$2" | sed -z 's/\\/\\\\/g; s/"/\\"/g; s/\n/\\n/g; s/\r/\\r/g; s/\t/\\t/g')"
    fi
}

function ekco_is_on() {
    case $1 in
    '' | 0 | false) return 1 ;;
    esac
}

# ekco_set_unless DISABLED KEY NEEDED... prints "KEY: true" if DISABLED is off and each NEEDED is on, else "KEY: false".
function ekco_set_unless() {
    local key=$2 value=true needed
    if ekco_is_on "$1"; then value=false; fi
    for needed in "${@:3}"; do
        if ! ekco_is_on "$needed"; then value=false; fi
    done
    echo "$key: $value"
}

function ekco_minio_namespace() {
    if [ -n "${MINIO_VERSION:-}" ]; then
        echo "${MINIO_NAMESPACE:-minio}"
    fi
}

# ekco_set_kotsadm KEY prints KEY with the value of enable_ha_kotsadm that follows from the installer's fields.
function ekco_set_kotsadm() {
    ekco_set_unless "${EKCO_KOTSADM_SHOULD_DISABLE_MANAGEMENT:-}" "$1" "${KOTSADM_VERSION:-}" "${OPENEBS_LOCALPV:-}"
}

# ekco_kotsadm LIVE prints enable_ha_kotsadm. kURL drops the field that switches it off, so an administrator must edit
# the ConfigMap. A "false" is such an edit, and stays, if the fields asked for "true" in the last run.
function ekco_kotsadm() {
    if [ "$EKCO_LAST_KOTSADM" = true ] && grep -qiE '^enable_ha_kotsadm: "?(false|f|0)"?$' "$1"; then
        echo "enable_ha_kotsadm: false"
    else
        ekco_set_kotsadm enable_ha_kotsadm
    fi
}

# ekco_token LIVE prints the token in the cluster, because join commands that kURL printed earlier contain it. If the
# cluster has none, it prints a new one.
function ekco_token() {
    local key=storage_migration_auth_token live token
    if live=$(grep -i -m 1 "^$key: .*[^\" ]" "$1"); then
        echo "$key:${live#*:}"
    else
        token=$(head -c 1024 /dev/urandom | LC_ALL=C tr -dc A-Za-z0-9 | cut -c 1-64)
        if [ ${#token} != 64 ]; then
            echo "Cannot read /dev/urandom" >&2
            return 1
        fi
        echo "$key: \"$token\""
    fi
}

# ekco_check_config asks EKCO itself whether it would accept the configuration.
function ekco_check_config() {
    local output code=0 line problem='^ekco: invalid configuration: ([a-z_]+) (is .*) \(/kustomize/config.yaml.*\): (want .*)$'
    output=$(ekco_run check-config "$(cd "$1" && pwd):/kustomize:ro" operator --check-config /kustomize/config.yaml 2>&1) || code=$?
    if [ $code = 2 ]; then
        while IFS= read -r line; do
            if [[ $line =~ $problem ]]; then
                line="$(ekco_field "${BASH_REMATCH[1]}") ${BASH_REMATCH[2]}: ${BASH_REMATCH[3]}"
            fi
            echo "$line" >&2
        done <<<"$output"
        ekco_bail "EKCO would not start with this configuration. Nothing was applied. Correct the values above and run the installer again."
    fi
    ekco_needs_run $code "$output"
    case $output in
    *'(pod_image_overrides)'*) ekco_bail "ekco.podImageOverrides is set, but EKCO $EKCO_VERSION cannot replace images. Nothing was applied. Remove the field and run the installer again." ;;
    esac
    # The first line says that the configuration is valid.
    sed 1d <<<"$output" | while IFS= read -r line; do ekco_warn "EKCO: $line"; done
}

# ekco_needs_run CODE OUTPUT ends the installer if ekco failed for another reason than an invalid configuration.
function ekco_needs_run() {
    [ "$1" = 0 ] || ekco_bail "Cannot check the configuration with EKCO's image: $2. Fix that and run the installer again."
}

# ekco_field KEY prints where an administrator sets KEY: the installer's field, or the ConfigMap.
function ekco_field() {
    case $1 in
    node_unreachable_toleration) echo ekco.nodeUnreachableToleration ;;
    min_ready_master_nodes) echo ekco.minReadyMasterNodeCount ;;
    min_ready_worker_nodes) echo ekco.minReadyWorkerNodeCount ;;
    pod_image_overrides) echo ekco.podImageOverrides ;;
    envoy_pods_not_ready_duration) echo ekco.envoyPodsNotReadyDuration ;;
    rook_minimum_node_count) echo rook.minimumNodeCount ;;
    rook_storage_class) echo rook.storageClassName ;;
    rook_storage_nodes) echo rook.nodes ;;
    minio_namespace) echo minio.namespace ;;
    *) echo "$1 in ConfigMap kurl/ekco-config" ;;
    esac
}

# --- Manifests --------------------------------------------------------------------------------------------------

# ekco_write_manifests FROM TO writes the kustomization: the manifests that every cluster needs, and the permissions for
# those add-ons that are installed or that this run of the installer will install.
function ekco_write_manifests() {
    local from=$1/templates to=$2 minio file hash tolerations
    local files=(rbac.yaml deployment.yaml service.yaml)
    minio=$(ekco_minio_namespace)
    # Not md5sum, because hosts in FIPS mode refuse it.
    hash=$(grep -v '^storage_migration_auth_token:' "$to/config.yaml" | sha256sum) ||
        ekco_bail "Cannot compute the checksum of $to/config.yaml. The error is above. Fix it and run the installer again."
    hash=${hash%% *}
    tolerations=$(kubectl -n kurl get deployment ekc-operator --ignore-not-found -o jsonpath='{.spec.template.spec.tolerations}') ||
        ekco_api_failed "read Deployment kurl/ekc-operator"
    if ekco_has_namespace rook-ceph; then files+=(rook.yaml); fi
    if [ -n "$minio" ]; then files+=(minio.yaml); fi
    if [ -n "${KOTSADM_VERSION:-}" ]; then files+=(kotsadm.yaml); fi
    if ekco_is_on "${EKCO_OPTIONAL_RBAC:-}"; then files+=(optional.yaml); fi
    if ekco_wants_scaling; then files+=(scaling.yaml); fi
    ekco_save "$to/configmap.yaml" ekco_configmap "$from/configmap.yaml" "$to/config.yaml"
    for file in "${files[@]}"; do
        ekco_save "$to/$file" sed "s/__CONFIG_HASH__/$hash/; s/__MINIO_NAMESPACE__/$minio/; $(ekco_keep_tolerations "$tolerations")" "$from/$file"
    done
    for file in kurl ${minio:+"$minio"}; do
        # MinIO may be in namespace kurl, too.
        if [[ " ${files[*]} " != *" namespace-$file.yaml "* ]] && ! ekco_has_namespace "$file"; then
            ekco_save "$to/namespace-$file.yaml" printf '%s\n' 'apiVersion: v1' 'kind: Namespace' 'metadata:' "  name: \"$file\""
            files+=("namespace-$file.yaml")
        fi
    done
    files+=(configmap.yaml)
    ekco_save "$to/kustomization.yaml" printf '%s\n' 'apiVersion: kustomize.config.k8s.io/v1beta1' 'kind: Kustomization' \
        'resources:' "${files[@]/#/  - }"
}

# ekco_keep_tolerations TOLERATIONS prints a sed command that keeps the Deployment's tolerations if kURL has set them. kURL
# sets its single toleration after this hook. If the hook set others before, each run would replace the pod twice.
function ekco_keep_tolerations() {
    local kurls='^\[\{[^{}]*"key":"node-role\.kubernetes\.io/(master|control-plane)"[^{}]*\}\]$'
    if [[ $1 =~ $kurls ]]; then
        echo "/^      tolerations:/,/^      containers:/{ s|^      tolerations:|      tolerations: $1|p; /^      containers:/!d; }"
    fi
}

# ekco_configmap TEMPLATE CONFIG prints the ConfigMap.
function ekco_configmap() {
    local wanted
    wanted=$(ekco_set_kotsadm wanted)
    sed "s/__WANTED__/${wanted#*: }/" "$1" && sed 's/^/    /' "$2"
}

# ekco_wants_scaling reports whether to create StorageClass scaling, the default until the cluster has enough nodes for
# Ceph.
function ekco_wants_scaling() {
    [ "${ROOK_MINIMUM_NODE_COUNT:-0}" -gt 1 ] || return 1
    if [ "$ROOK_MINIMUM_NODE_COUNT" -lt 3 ]; then
        ekco_warn "rook.minimumNodeCount is $ROOK_MINIMUM_NODE_COUNT: EKCO ignores values below 3"
    fi
    ! ekco_exists storageclass "${STORAGE_CLASS:-distributed}" scaling
}

# Only kURL's EKCO 0.28 reads this label. This EKCO sets the priority class of Rook's pods without it.
function ekco_label_rook() {
    local label='rook-priority.kurl.sh-'
    if ! ekco_has_namespace rook-ceph; then return 0; fi
    if [ "${ROOK_VERSION:-}" = 1.0.4 ]; then label='rook-priority.kurl.sh='; fi
    kubectl label namespace rook-ceph --overwrite $label >/dev/null || ekco_api_failed "label namespace rook-ceph"
}

function ekco_has_namespace() { [[ $'\n'$EKCO_NAMESPACES$'\n' == *$'\n'"namespace/$1"$'\n'* ]]; }

# ekco_exists KIND NAME... reports whether the cluster has one of these objects. If the API does not answer, it ends the
# installer; kURL's kubernetes_resource_exists would report that the object is missing. Do not call it in a subshell:
# bail would end only the subshell.
function ekco_exists() {
    local found
    found=$(kubectl get "$1" --ignore-not-found -o name -- "${@:2}") || ekco_api_failed "read $*"
    [ -n "$found" ]
}

# --- Hosts and images -------------------------------------------------------------------------------------------

function ekco_install_purge_command() {
    local to=$EKCO_HOST_BIN/ekco-purge-node
    if ! cmp -s "$1/ekco-purge-node" "$to"; then
        ekco_save "$to" cat "$1/ekco-purge-node"
    fi
    [ -x "$to" ] || chmod u+x "$to" || ekco_cannot_write "$to"
}

function ekco_load_override_images() {
    local file
    if [ -n "${EKCO_POD_IMAGE_OVERRIDES:-}" ] && [ "${AIRGAP:-}" = 1 ] && [ -d "$DIR/image-overrides" ]; then
        logStep "Loading the images of ekco.podImageOverrides"
        # kURL's load_images fails for archives that are not compressed.
        while IFS= read -r file; do
            # 141: the import reads only to the end of the archive, and zcat may still write padding.
            if ! { zcat -f "$file" | ekco_import_image && [[ ${PIPESTATUS[0]} =~ ^(0|141)$ ]]; }; then
                ekco_bail "Cannot load the images in $file. The error is above. Replace the file or fix the error, and run the installer again."
            fi
        done < <(find "$DIR/image-overrides" -type f | sort)
    fi
}

# ekco_wait_for_overrides waits until EKCO can replace images, because the next add-ons create pods. ekco_check_config
# ends the installer before, if this version of EKCO cannot.
function ekco_wait_for_overrides() {
    local seconds=300 reason
    if [ -z "${EKCO_POD_IMAGE_OVERRIDES:-}" ]; then return 0; fi
    ekco_load_override_images
    logStep "Waiting until EKCO replaces images in new pods"
    until ekco_until $seconds kubernetes_resource_exists default mutatingwebhookconfigurations pod-image-overrides.kurl.sh; do
        reason=$(ekco_why_no_webhook)
        if [ -z "$reason" ]; then
            if ekco_exists mutatingwebhookconfigurations pod-image-overrides.kurl.sh; then return 0; fi
            ekco_bail "EKCO has not registered its webhook pod-image-overrides.kurl.sh within 5 minutes. To see why, run kubectl -n kurl logs deploy/ekc-operator. Fix that and run the installer again."
        fi
        log "EKCO does not replace images yet: $reason"
        seconds=30
    done
}

# ekco_why_no_webhook prints EKCO's reason for not having registered its webhook yet, or nothing.
function ekco_why_no_webhook() {
    ekco_exec 30 ekco explain pod-image-overrides 2>/dev/null | sed -n 's/^not yet: //p' || true
}

# ekco_until SECONDS FUNCTION ARGUMENT... runs a function each second until it succeeds or the time is over. kURL's
# spinner_until does not count the time that the function itself takes.
function ekco_until() {
    EKCO_SUCCEEDED='' EKCO_DEADLINE=$((SECONDS + $1))
    spinner_until "$1" ekco_succeeds_or_late "${@:2}" || true
    [ -n "$EKCO_SUCCEEDED" ]
}

function ekco_succeeds_or_late() {
    if "$@"; then EKCO_SUCCEEDED=1; fi
    [ -n "$EKCO_SUCCEEDED" ] || [ "$SECONDS" -ge "$EKCO_DEADLINE" ]
}

# ekco_addon_dir prints the directory of this add-on's files.
function ekco_addon_dir() { echo "$DIR/addons/ekco/$EKCO_VERSION"; }

# ekco_image KEY prints the default of KEY, which is an image, in this version's configuration.
function ekco_image() {
    sed -n "s/^$1: //p" "$DIR/addons/ekco/$EKCO_VERSION/templates/config.yaml"
}

# ekco_full_name IMAGE prints the image's name with its registry, which containerd needs.
function ekco_full_name() {
    case $1 in
    */*) echo "docker.io/$1" ;;
    *) echo "docker.io/library/$1" ;;
    esac
}

function ekco_has_docker() { [ -n "${DOCKER_VERSION:-}" ]; }

function ekco_ctr() {
    local address=''
    if declare -F "${K8S_DISTRO:-}_get_containerd_sock" >/dev/null; then
        address=$("${K8S_DISTRO}_get_containerd_sock")
    fi
    ctr ${address:+--address "$address"} --namespace k8s.io "$@"
}

# ekco_import_image reads an archive with images from its standard input.
function ekco_import_image() {
    if ekco_has_docker; then
        docker load
    else
        ekco_ctr images import -
    fi
}

# ekco_needs_image IMAGE NAME ends the installer if the image is not on this host. The package has it in
# images/NAME.tar.gz.
function ekco_needs_image() {
    local file load found
    file=$(ekco_addon_dir)/images/$2.tar.gz
    load="gunzip -c $file | ctr -n k8s.io images import -"
    if ekco_has_docker; then
        load="docker load -i $file"
        docker version >/dev/null || ekco_bail "Cannot ask Docker for image $1. The error is above. Check that Docker runs (systemctl status docker), and run the installer again."
        if docker image inspect "$1" >/dev/null 2>&1; then return 0; fi
    else
        found=$(ekco_ctr images list --quiet "name==$(ekco_full_name "$1")") ||
            ekco_bail "Cannot ask containerd for image $(ekco_full_name "$1"). The error is above. Check that containerd runs (systemctl status containerd), and run the installer again."
        if [ -n "$found" ]; then return 0; fi
    fi
    ekco_bail "Image $(ekco_full_name "$1") is not on this host. Load it ($load) or, if that file does not exist, pull it. Then run the installer again."
}

# ekco_run NAME MOUNT ARGUMENT... runs ekco in a container. MOUNT is HOSTDIR:DIR[:ro], or empty.
function ekco_run() {
    local name=$1 mount=$2 image from to mode options=()
    image=$(ekco_image host_task_image)
    shift 2
    if ekco_has_docker; then
        docker run --rm --entrypoint /usr/bin/ekco ${mount:+--volume "$mount"} "$image" "$@"
        return
    fi
    if [ -n "$mount" ]; then
        IFS=: read -r from to mode <<<"$mount"
        options=(--mount "type=bind,src=$from,dst=$to,options=rbind:${mode:-rw}")
    fi
    ekco_remove_container "$name"
    # ctr reads its standard input, which is the installer itself in "curl ... | bash".
    ekco_ctr run --rm ${options[@]+"${options[@]}"} "$(ekco_full_name "$image")" "$name" ekco "$@" </dev/null
}

# ekco_remove_container NAME removes the container if it exists, for example because an earlier installer was killed.
function ekco_remove_container() {
    if ekco_has_docker; then
        docker rm --force "$1" >/dev/null 2>&1 || true
        return 0
    fi
    if [ -n "$(ekco_ctr containers list --quiet "id==$1" || true)" ]; then
        ekco_ctr tasks kill --signal SIGKILL "$1" >/dev/null 2>&1 || true
        ekco_ctr tasks delete --force "$1" >/dev/null 2>&1 || true
        ekco_ctr containers delete "$1" >/dev/null 2>&1 || return 0
    fi
    # ctr creates the snapshot before the container, so a killed ctr can leave a snapshot without a container.
    ekco_ctr snapshots remove "$1" >/dev/null 2>&1 || true
}

# --- Errors -----------------------------------------------------------------------------------------------------

# kURL's functions use their text as a format of printf. So "%" and "\" in a text from outside are doubled.
function ekco_bail() { bail "$(ekco_literal "$1")"; }
function ekco_warn() { logWarn "$(ekco_literal "$1")"; }
function ekco_literal() {
    local text=${1//\\/\\\\}
    printf '%s' "${text//[%]/%%}"
}

# ekco_needs FUNCTION... ends the installer if kURL lacks one of these functions, and lists the missing ones.
function ekco_needs() {
    local name missing=''
    for name in "$@"; do
        if ! declare -F "$name" >/dev/null; then missing="$missing $name"; fi
    done
    if [ -n "$missing" ]; then
        echo "EKCO $EKCO_VERSION needs functions that this version of kURL does not have:$missing. Use a newer kURL." >&2
        exit 1
    fi
}

# ekco_save FILE COMMAND... writes the command's output to a file, or leaves the file as it was if the command fails. If
# FILE is a symbolic link, it writes to the target.
function ekco_save() {
    local file=$1 text
    shift
    text=$("$@") || ekco_bail "Cannot create the content of $file. The error is above. Fix it and run the installer again."
    { { [ -d "${file%/*}" ] || mkdir -p "${file%/*}"; } && printf '%s\n' "$text" >"$file"; } || ekco_cannot_write "$file"
}

function ekco_cannot_write() {
    ekco_bail "Cannot write $1. The error is above. Free some space or make the file writable, and run the installer again."
}

function ekco_api_failed() {
    ekco_bail "Cannot $1. The error is above. Check that the Kubernetes API answers (kubectl get nodes), and run the installer again."
}
