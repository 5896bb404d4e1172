package loadbalancer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/internal/durable"
)

const (
	// PodName is the name of the static pod.
	PodName = "haproxy"
	// Label is the label of the pods.
	Label = "app"
	// App is the value of [Label].
	App = "kurl-haproxy"
	// FileVersionAnnotation is the annotation with the file version of the manifest. Without it, the version is 0.
	FileVersionAnnotation = "kurl.sh/haproxy-fileversion"
	// FileVersion must be raised when anything in the manifest except the image changes. Then each node restarts HAProxy
	// once.
	FileVersion = "0"
	// TCPFileVersion is the version of a manifest with a liveness probe that only opens a connection. It is for API
	// servers that refuse anonymous requests (--anonymous-auth=false). With the usual probe, their answer 401 would make
	// the kubelet restart HAProxy every 80 s.
	TCPFileVersion = FileVersion + "-tcp"
)

const (
	// fileMode is the mode of the files: HAProxy, which does not run as root, must be able to read them.
	fileMode = 0o644
	// maxManifest is the maximum size of a manifest in bytes. Manifests of static pods have some kilobytes.
	maxManifest = 1 << 20
)

// reference matches the characters that a reference to an image can have.
var reference = regexp.MustCompile(`^[A-Za-z0-9\[][A-Za-z0-9._/:@+\[\]-]*$`)

// CheckImage returns an error unless name can be a reference to an image.
func CheckImage(name string) error {
	if !reference.MatchString(name) {
		return fmt.Errorf("image %q is not valid: want for example haproxy:lts-alpine", name)
	}
	return nil
}

// Manifest returns the manifest of the static pod, in version [FileVersion].
func Manifest(image string) (string, error) { return manifest{FileVersion, image}.text() }

// probes has the liveness probe of each version of the manifest.
var probes = map[string]string{
	FileVersion: fmt.Sprintf(`      httpGet:
        scheme: HTTPS
        host: localhost
        port: %d
        path: /healthz
`, Port),
	TCPFileVersion: fmt.Sprintf(`      tcpSocket:
        host: localhost
        port: %d
`, Port),
}

func (m manifest) text() (string, error) {
	if err := CheckImage(m.image); err != nil {
		return "", err
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: kube-system
  labels:
    %s: %s
  annotations:
    %s: "%s"
spec:
  hostNetwork: true
  containers:
  - name: haproxy
    image: "%s"
    livenessProbe:
      failureThreshold: 8
%s    volumeMounts:
    - name: haproxyconf
      mountPath: /usr/local/etc/haproxy/haproxy.cfg
      readOnly: true
  volumes:
  - name: haproxyconf
    hostPath:
      path: /etc/haproxy/haproxy.cfg
      type: FileOrCreate
`, PodName, Label, App, FileVersionAnnotation, m.version, m.image, probes[m.version]), nil
}

// WriteManifest writes the manifest of the static pod with the image, and reports whether it has written the file. It
// keeps a manifest that already has the image and the file version, because other differences are no reason to restart
// HAProxy. A manifest in version [TCPFileVersion] keeps that version.
func WriteManifest(path, image string) (written bool, err error) {
	_, written, err = writeManifest(path, manifest{FileVersion, image})
	return written, err
}

func writeManifest(path string, want manifest) (has manifest, written bool, err error) {
	if err := CheckImage(want.image); err != nil {
		return has, false, err
	}
	path = filepath.Clean(path)
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to // keep a symbolic link
	}
	present, err := readManifest(path)
	if err != nil {
		return has, false, err
	}
	if present.version == TCPFileVersion {
		want.version = TCPFileVersion
	}
	if present == want {
		return present, false, nil
	}
	content, err := want.text()
	if err != nil {
		return has, false, err
	}
	if err := durable.Replace(path, []byte(content), fileMode); err != nil {
		return has, false, fmt.Errorf("write %s: %w%s", path, err, advice(err))
	}
	return want, true, nil
}

// restartedAnnotation is the annotation with the time at which HAProxy was restarted after its old configuration was
// restored.
const restartedAnnotation = "ekco.kurl.sh/restarted"

// triggerRestart changes only an annotation of the manifest, so that the kubelet restarts HAProxy. The liveness probe
// alone is not enough: a probe that only opens a connection does not notice that HAProxy reaches no API server.
func triggerRestart(path string) error {
	path, err := filepath.EvalSymlinks(path)
	if err == nil {
		_, err = durable.Edit(path, maxManifest, func(present []byte) ([]byte, error) {
			var pod unstructured.Unstructured
			if err := yaml.Unmarshal(present, &pod.Object); err != nil {
				return nil, err
			}
			if pod.Object == nil {
				return nil, errors.New("it is empty")
			}
			annotations := pod.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[restartedAnnotation] = time.Now().UTC().Format(time.RFC3339)
			pod.SetAnnotations(annotations)
			return yaml.Marshal(pod.Object)
		})
	}
	if err != nil {
		return fmt.Errorf("change the manifest so that the kubelet restarts HAProxy: %w", err)
	}
	return nil
}

// manifest has the fields that decide whether a manifest is written again.
type manifest struct{ version, image string }

// readManifest reads the present manifest. A missing or empty file is no error, because writing it destroys nothing.
func readManifest(path string) (manifest, error) {
	content, err := durable.Read(path, maxManifest)
	if errors.Is(err, os.ErrNotExist) {
		return manifest{}, nil
	}
	if err != nil {
		return manifest{}, fmt.Errorf("read HAProxy's manifest: %w%s", err, advice(err))
	}
	m, err := parseManifest(content)
	if err != nil {
		return manifest{}, fmt.Errorf("%s is not HAProxy's manifest, so EKCO does not change it: %w; move it away if HAProxy's manifest should be there", path, err)
	}
	return m, nil
}

// advice returns a text with advice about a file that cannot be read or written.
func advice(err error) string {
	switch {
	case errors.Is(err, os.ErrPermission):
		return "; run this as root"
	case errors.Is(err, durable.ErrNoFile), errors.Is(err, durable.ErrTooLarge):
		return "; name another with --file, or move it away"
	}
	return ""
}

// parseManifest parses a manifest. It returns an error for the manifest of another pod, which EKCO must not overwrite.
func parseManifest(content []byte) (manifest, error) {
	var pod *corev1.Pod
	if err := yaml.Unmarshal(content, &pod); err != nil {
		return manifest{}, err
	}
	switch {
	case pod == nil:
		return manifest{}, nil
	case pod.Kind != "Pod":
		return manifest{}, fmt.Errorf("its kind is %q, not Pod", pod.Kind)
	case pod.Name != PodName:
		return manifest{}, fmt.Errorf("it is the manifest of pod %q, not of %s", pod.Name, PodName)
	}
	m := manifest{version: "0"}
	if version, set := pod.Annotations[FileVersionAnnotation]; set {
		m.version = version
	}
	if len(pod.Spec.Containers) > 0 {
		m.image = pod.Spec.Containers[0].Image
	}
	return m, nil
}
