package primarytest

import (
	"context"
	"crypto/md5" //nolint:gosec // the kubelet uses it as well
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
)

// loads has the certificates that a component reads when it starts.
var loads = map[string][]string{
	"kube-apiserver":          {"pki/apiserver-etcd-client", "pki/apiserver-kubelet-client", "pki/front-proxy-client"},
	"kube-controller-manager": {"controller-manager.conf"},
	"kube-scheduler":          {"scheduler.conf"},
}

// Kubelet runs the static pods of a host.
type Kubelet struct {
	*Host
	// Down makes the kubelet do nothing.
	Down bool
	// Refuses returns the reason why a component does not answer, or "". loaded has the fingerprints of the
	// certificates that the component has loaded.
	Refuses func(component string, loaded []string) string

	mu    sync.Mutex
	pods  map[string][]running
	asked map[string]primary.Static
}

// running is a pod.
type running struct {
	uid     string
	loaded  []string
	started time.Time
}

// sync replaces the pods whose manifests have changed. The caller holds the lock.
func (k *Kubelet) sync() {
	if k.pods == nil {
		k.pods = map[string][]running{}
	}
	manifests, err := filepath.Glob(filepath.Join(k.Dir, "manifests", "[^.]*"))
	if err != nil {
		k.T.Fatal(err)
	}
	for _, path := range manifests {
		content, err := os.ReadFile(path)
		if err != nil {
			k.T.Fatal(err)
		}
		sum := md5.Sum(content) //nolint:gosec // see above
		component, uid := strings.TrimSuffix(filepath.Base(path), ".yaml"), hex.EncodeToString(sum[:])
		pods := k.pods[component]
		if k.Down || len(pods) > 0 && pods[len(pods)-1].uid == uid {
			continue
		}
		pod := running{uid: uid, started: time.Now()}
		for _, item := range loads[component] {
			pod.loaded = append(pod.loaded, k.fingerprint(item))
		}
		k.pods[component] = append(pods, pod)
	}
}

// fingerprint returns the fingerprint of an item's certificate in its file.
func (k *Kubelet) fingerprint(item string) string {
	certificate, key, err := k.pair(item)
	if err != nil {
		return "nothing"
	}
	chain, _, err := certificates.Pair(certificate, key)
	if err != nil {
		return "no pair"
	}
	return certificates.Fingerprint(chain[0])
}

// Loaded returns the fingerprints of the certificates that a component has loaded.
func (k *Kubelet) Loaded(component string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sync()
	pods := k.pods[component]
	return pods[len(pods)-1].loaded
}

// Starts counts how often a component was started.
func (k *Kubelet) Starts(component string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sync()
	return len(k.pods[component])
}

// Newest returns the UID and the start time of a component's running pod.
func (k *Kubelet) Newest(component string) (uid string, started time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sync()
	pods := k.pods[component]
	if len(pods) == 0 {
		return "", time.Time{}
	}
	return pods[len(pods)-1].uid, pods[len(pods)-1].started
}

// Asked returns the arguments of the last health check of a component.
func (k *Kubelet) Asked(component string) primary.Static {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked[component]
}

// Pods implements [primary.Kubelet].
func (k *Kubelet) Pods(of primary.Static) (pods []primary.Pod, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sync()
	for _, pod := range k.pods[of.Name] {
		pods = append([]primary.Pod{{UID: pod.uid}}, pods...)
	}
	return pods, nil
}

// Answers implements [primary.Kubelet].
func (k *Kubelet) Answers(_ context.Context, of primary.Static) error {
	k.mu.Lock()
	if k.asked == nil {
		k.asked = map[string]primary.Static{}
	}
	k.asked[of.Name] = of
	k.mu.Unlock()
	if of.Probe == "" && of.Handshake == "" {
		return errors.New("it cannot be asked")
	}
	if k.Refuses == nil {
		return nil
	}
	if why := k.Refuses(of.Name, k.Loaded(of.Name)); why != "" {
		return errors.New(why)
	}
	return nil
}

// LastWords implements [primary.Kubelet].
func (k *Kubelet) LastWords(of primary.Static, _ string) string {
	return "I am " + of.Name + " and cannot go on"
}
