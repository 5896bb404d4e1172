package primary

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/journal"
)

// maxNames and maxProblem limit the recorded facts of one certificate.
const (
	maxNames   = 12
	maxProblem = 300
)

// Look reads the certificates in a directory and changes nothing. For each certificate that is due, it also reports the
// problems that would prevent the renewal.
func Look(dir string, ttl time.Duration, now time.Time, isDue IsDue) journal.CertificatesOnPrimary {
	r := &run{Rotation: Rotation{Dir: dir, TTL: ttl, IsDue: isDue, Now: func() time.Time { return now }}, authorities: map[string]authority{}}
	found := journal.CertificatesOnPrimary{Clock: now.UTC()}
	for _, i := range items {
		h, err := i.read(r.at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if h.leaf != nil { // report the expiry even if the key is unusable
			facts := certificates.Facts(r.at(i.mainFile()), h.leaf)
			if more := len(facts.Names) - maxNames; more > 0 {
				facts.Names, facts.MoreNames = facts.Names[:maxNames], facts.MoreNames+more
			}
			if err == nil && r.isDue(h.leaf, false) {
				err = r.renewable(h)
			}
			facts.CannotRenew = err != nil
			found.Certificates = append(found.Certificates, facts)
			for _, other := range h.kubeconfig.Others {
				if one, otherErr := other.OneCertificate(); otherErr == nil && r.isDue(one, false) {
					err = cmp.Or(err, fmt.Errorf("%s expires at %s; EKCO renews only the user of the current context",
						other.Name, one.NotAfter.UTC().Format(time.RFC3339)))
				}
			}
		}
		err = r.withOwnerAdvice(err)
		if err != nil && !slices.Contains(found.Problems, bounded(err.Error())) {
			found.Problems = append(found.Problems, bounded(err.Error()))
		}
	}
	return found
}

// renewable returns an error that would prevent the renewal of an item, or the restart of the component that uses it.
func (r *run) renewable(h held) error {
	if _, err := r.signer(h); err != nil || h.component == "" {
		return err
	}
	_, err := r.checkableStatic(h.component)
	if errors.Is(err, fs.ErrNotExist) { // the component is not on this host, so nothing is restarted
		return nil
	}
	return err
}

func bounded(text string) string {
	if len(text) <= maxProblem {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:maxProblem]), nil)) + "…"
}

// ports has the item whose certificate is served at each port.
var ports = map[int]string{6443: "pki/apiserver", 2379: "pki/etcd/server", 2380: "pki/etcd/peer"}

// Renewed returns the result of a rotation for verification from outside the host.
func (of Rotation) Renewed(result Result) journal.ControlPlaneRenewed {
	r := &run{Rotation: of}
	renewed := journal.ControlPlaneRenewed{Rotated: result.Rotated, Restarted: result.Restarted, Served: map[int]string{}}
	for _, failed := range result.Failed {
		renewed.Failed = append(renewed.Failed, bounded(failed))
	}
	for port, path := range ports {
		i, _ := itemOf(path)
		if h, err := i.read(r.at); err == nil {
			renewed.Served[port] = certificates.Fingerprint(h.leaf)
		}
	}
	for _, name := range components() {
		if static, err := r.static(name); err == nil {
			renewed.Components = append(renewed.Components, r.component(static, name))
		}
	}
	return renewed
}

// component returns the state of a component on the host.
func (r *run) component(static Static, name string) journal.ControlPlaneComponent {
	c := journal.ControlPlaneComponent{Name: name}
	if pods, err := r.Kubelet.Pods(static); err == nil && len(pods) > 0 {
		c.Hash = pods[0].UID
	}
	for _, i := range items {
		if h, err := i.read(r.at); err == nil && i.component == name {
			if made := h.leaf.NotBefore.Add(certificates.Back); made.After(c.Since) {
				c.Since = made.UTC()
			}
		}
	}
	return c
}
