#!/bin/bash
# Builds EKCO's add-on for kURL in directory $1, by default bin/kurl: addons/ekco/VERSION, and an archive of that.
# The manifests come from deploy/. The build uses no registry: $EKCO_IMAGE_ARCHIVE is the archive from "make image", and
# $HAPROXY_IMAGE_ARCHIVE is HAProxy's image from "docker save" or "ctr images export". Two builds of the same commit and
# images are identical.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$root/bin/kurl}

: "${VERSION:?is not set; run make kurl}"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)}
ekco_image=${EKCO_IMAGE_ARCHIVE:-$root/bin/image/ekco-$VERSION.tar}
number=${VERSION#v}

# from_deploy FILE prints a manifest from deploy/, with this version's image.
from_deploy() {
	sed "s#replicated/ekco:v[0-9.]*#replicated/ekco:$VERSION#" "$root/deploy/$1"
}

templates() {
	mkdir "$1"
	cp "$here"/{configmap,regen-cert,scaling}.yaml "$1"
	local name
	for name in rbac service; do from_deploy $name.yaml >"$1/$name.yaml"; done
	for name in rook kotsadm optional; do from_deploy $name/rbac.yaml >"$1/$name.yaml"; done
	from_deploy minio/rbac.yaml | sed 's/^  namespace: minio$/  namespace: "__MINIO_NAMESPACE__"/' >"$1/minio.yaml"
	# EKCO reads its configuration only when it starts. With the hash, Kubernetes replaces the pod if the configuration changes.
	from_deploy deployment.yaml |
		sed 's|^    metadata:$|&\n      annotations:\n        ekco.kurl.sh/config-hash: "__CONFIG_HASH__"|' >"$1/deployment.yaml"
	from_deploy configmap.yaml | sed -n 's/^    //p' >"$1/config.yaml"
}

# add_image NAME ARCHIVE HINT IMAGE adds an image's archive, compressed or not, to the package. If there is no such file,
# it prints HINT, which says what to do. The build ends if the archive has no image named IMAGE.
add_image() {
	if [ ! -e "$2" ]; then
		echo "build.sh: images/$1.tar.gz is not in the package: $3" >&2
		return
	fi
	if [ "$(head -c 2 "$2" | od -An -tx1)" = " 1f 8b" ]; then
		gunzip -c "$2" >"$work/$1.tar" || incomplete "$2" "gunzip cannot read it"
	else
		cat "$2" >"$work/$1.tar"
	fi
	check_image "$work/$1.tar" "$2" "$4"
	gzip -9nc "$work/$1.tar" >"$addon/images/$1.tar.gz"
}

# check_image TAR NAME IMAGE ends the build if an image's archive is truncated, or lacks a file that its manifest or index
# lists. containerd may import such an archive, but its containers do not start. The format is Docker's, OCI's, or both.
check_image() {
	local dir=$work/files file list
	rm -rf "$dir" && mkdir "$dir"
	tar --extract --file "$1" --directory "$dir" --no-same-owner || incomplete "$2" "tar cannot read it"
	list=$(digests "$dir" | sed 's|^|blobs/sha256/|')
	if [ -e "$dir/manifest.json" ]; then
		list+=" $(grep -oE '"[^"]+(\.json|\.tar|sha256/[0-9a-f]{64})"' "$dir/manifest.json" | tr -d '"' | grep -v ^application/ || true)"
	fi
	[ -n "${list// /}" ] || incomplete "$2" "it has neither manifest.json nor index.json"
	grep -qsE "\"(docker\.io/(library/)?)?$3\"" "$dir"/{manifest,index}.json || incomplete "$2" "it has no image with the name $3"
	for file in $list; do
		[ -e "$dir/$file" ] || incomplete "$2" "$file is missing"
	done
	for file in "$dir"/blobs/sha256/*; do
		[ ! -e "$file" ] || sha256sum "$file" | grep -q "^${file##*/} " || incomplete "$2" "the content of blobs/sha256/${file##*/} does not match that checksum"
	done
}

# digests DIR prints the digests that the JSON files of an OCI image layout list.
digests() {
	local file
	for file in "$1/index.json" "$1"/blobs/sha256/*; do
		if [ -e "$file" ] && head -c 1 "$file" | grep -q '{'; then
			grep -oE '"digest": *"sha256:[0-9a-f]{64}"' "$file" | sed 's/.*sha256:\(.*\)"/\1/' || true
		fi
	done
}

incomplete() {
	echo "build.sh: cannot use $1 as an image archive: $2. Create it again" >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work" "$out/package.tmp"' EXIT
rm -rf "$out/addons/ekco" "$out/ekco-$number.tar.gz" # also the directories of other versions
addon=$out/addons/ekco/$number
mkdir -p "$addon/images"
cp -r "$here/reboot" "$addon"
cp "$here"/{install.sh,loadbalancer.sh,merge.awk,host-preflight.yaml} "$root/deploy/host/ekco-purge-node" "$addon"
templates "$addon/templates"
haproxy=$(sed -n 's/^internal_load_balancer_haproxy_image: //p' "$addon/templates/config.yaml")
sed "s#__VERSION__#$VERSION#; s#__HAPROXY__#$haproxy#" "$here/Manifest" >"$addon/Manifest"
add_image ekco "$ekco_image" "there is no $ekco_image; run make image" "replicated/ekco:$VERSION"
add_image haproxy "${HAPROXY_IMAGE_ARCHIVE:-}" "${HAPROXY_IMAGE_ARCHIVE:+there is no $HAPROXY_IMAGE_ARCHIVE; }set HAPROXY_IMAGE_ARCHIVE to an archive of docker.io/library/$haproxy. Without it the internal load balancer works only on hosts that have this image" "$haproxy"
find "${addon%/*}" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
tar --create --directory "$out" --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" addons/ekco |
	gzip -n >"$out/package.tmp"
mv "$out/package.tmp" "$out/ekco-$number.tar.gz"
echo "build.sh: $out/ekco-$number.tar.gz is $(du -m "$out/ekco-$number.tar.gz" | cut -f 1) MB" >&2
