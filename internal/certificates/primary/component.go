package primary

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strconv"
	"strings"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/durable"
)

// Annotation is the annotation of a static pod with the ID of the last rotation that restarted it.
const Annotation = "ekco.kurl.sh/certificates"

// restored is the suffix of the ID in [Annotation] after the old files were restored.
const restored = "-restored"

// manifests is the directory of static pods, relative to the directory of Kubernetes.
const manifests = "manifests"

// waves are the components in the order of their restart. The other components need the API server, so it is first.
var waves = [][]string{{apiServer}, {controllerManager, scheduler}}

func components() (all []string) {
	for _, wave := range waves {
		all = append(all, wave...)
	}
	return all
}

func manifestOf(component string) string { return manifests + "/" + component + ".yaml" }

func (r *run) manifest(component string) (certificates.File, certificates.Manifest, error) {
	file, err := certificates.ReadFile(r.at(manifestOf(component)))
	if err != nil {
		return file, certificates.Manifest{}, err
	}
	manifest, err := file.Manifest()
	return file, manifest, err
}

// static returns the static pod of a component. The error is fs.ErrNotExist if the component is not on this host.
func (r *run) static(component string) (Static, error) {
	_, manifest, err := r.manifest(component)
	if err != nil {
		return Static{}, err
	}
	container, err := manifest.Component(component)
	static := Static{
		Namespace: manifest.Namespace, Name: manifest.Name, Container: container.Name, Probe: container.Probe, Startup: container.Startup,
	}
	if err != nil || container.Probe != "" {
		return static, err
	}
	static.Handshake = handshake(component, container)
	i, _ := itemOf("pki/apiserver")
	if served, errRead := i.read(r.at); errRead == nil && component == apiServer && strings.HasSuffix(container.Flag("--tls-cert-file"), "/"+i.mainFile()) {
		static.Serves = certificates.Fingerprint(served.leaf)
	}
	return static, nil
}

// checkableStatic returns the static pod of a component. It returns an error if EKCO could not check that the component
// works after a restart.
func (r *run) checkableStatic(component string) (Static, error) {
	static, err := r.static(component)
	if err == nil && !static.canBeChecked() {
		err = fmt.Errorf("restart %s: %w", component, errNotCheckable)
	}
	return static, err
}

// securePorts are the components' default ports.
var securePorts = map[string]string{apiServer: "6443", controllerManager: "10257", scheduler: "10259"}

// handshake returns the address at which a component serves TLS on its host, or "".
func handshake(component string, of certificates.Container) string {
	port := cmp.Or(of.Flag("--secure-port"), securePorts[component])
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return ""
	}
	host := "127.0.0.1"
	if ip := net.ParseIP(of.Flag("--bind-address")); ip != nil && !ip.IsUnspecified() {
		host = ip.String()
	}
	return net.JoinHostPort(host, port)
}

// marked returns the value of [Annotation] in a component's manifest.
func (r *run) marked(component string) (string, error) {
	_, manifest, err := r.manifest(component)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return manifest.Annotations[Annotation], err
}

// preparedManifest is a component's manifest with a new annotation, written next to the manifest, and the old content.
type preparedManifest struct {
	durable.Replacement
	of []byte
}

// prepareManifest writes a component's manifest with the new annotation next to the manifest.
func (r *run) prepareManifest(component, value string) error {
	file, _, err := r.manifest(component)
	if err != nil {
		return err
	}
	content, err := file.Annotated(Annotation, value)
	if err != nil {
		return err
	}
	r.effect("prepare " + manifestOf(component))
	temp, err := r.prepareFile(file.Name, content)
	if err != nil {
		return fmt.Errorf("prepare %s: %w", file.Name, err)
	}
	r.manifests[component] = preparedManifest{temp, file.Content}
	return nil
}

func (r *run) discardManifests() (err error) {
	for _, temp := range r.manifests {
		err = errors.Join(err, temp.Discard())
	}
	clear(r.manifests)
	return err
}

// mark sets the annotation in a component's manifest, so that the kubelet restarts the component. If another program
// has changed the manifest since it was prepared, mark keeps that change.
func (r *run) mark(component, value string) error {
	return r.withFileLocks(func() error {
		prepared, is := r.manifests[component]
		if file, _, err := r.manifest(component); !is || err != nil || !bytes.Equal(file.Content, prepared.of) {
			if err := r.prepareManifest(component, value); err != nil {
				return err
			}
			prepared = r.manifests[component]
		}
		delete(r.manifests, component)
		return r.swap("mark", []durable.Replacement{prepared.Replacement})
	})
}
