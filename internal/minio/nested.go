package minio

import (
	"bytes"
	"context"
	_ "embed" // for walk
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/podexec"
)

// Nested is an object whose key continues the key of another object, Above: report/2026.csv continues report. MinIO
// stores both objects, but it lists, copies and restores only Above.
type Nested struct{ Bucket, Key, Above string }

// searchScript is a script that runs in the shell of a server's own container, so it needs no installation or mount. MinIO's
// inspect-data is no alternative: it sends all data that it finds, and does not report a drive that it left out. In a
// test with a busy client it left out three of six drives.
//
//go:embed nested.sh
var searchScript string

// drivesOf returns the container that mounts the drives, and the paths of the mounts.
func drivesOf(pod corev1.PodSpec) (container string, paths []string) {
	for _, volume := range pod.Volumes {
		for _, one := range pod.Containers {
			for _, mount := range one.VolumeMounts {
				if volume.PersistentVolumeClaim == nil || mount.Name != volume.Name || container != "" && container != one.Name {
					continue // a sidecar may mount the drive elsewhere
				}
				container, paths = one.Name, append(paths, mount.MountPath)
			}
		}
	}
	return container, paths
}

// Nested implements [API].
func (c *Client) Nested(ctx context.Context, pod string) ([]Nested, error) {
	read, err := kube.Get[corev1.Pod](ctx, c.objects, namedPodRef(c.namespace, pod))
	if err != nil {
		return nil, err
	}
	container, paths := drivesOf(read.Spec)
	if container == "" {
		return nil, fmt.Errorf("search the drive of pod %s for objects below other objects: the pod mounts no claim", pod)
	}
	in := podexec.Pod{Namespace: c.namespace, Name: pod, Container: container}
	stdout, stderr, code, err := c.servers.Exec(kube.ReadsOnly(ctx), in, append([]string{"sh", "-c", searchScript, "walk"}, paths...))
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, bytes.TrimSpace(stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("search the drive of pod %s for objects below other objects, with the pod's shell: %w", pod, err)
	}
	return parseNested(string(stdout)), nil
}

// parseNested parses the output of [searchScript].
func parseNested(printed string) (found []Nested) {
	parts := strings.Split(printed, "\x00")
	for i := 1; i < len(parts); i += 2 {
		bucket, above, isObject := strings.Cut(parts[i-1], "/")
		if !isObject {
			continue
		}
		key := strings.TrimPrefix(parts[i], bucket+"/")
		if folder, is := strings.CutSuffix(key, "__XLDIR__"); is { // MinIO stores a key that ends with a slash like this
			key = folder + "/"
		}
		found = append(found, Nested{Bucket: bucket, Key: key, Above: above})
	}
	return found
}
