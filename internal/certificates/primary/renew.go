package primary

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/durable"
)

// made is an item with its old and its new content.
type made struct {
	old held
	// content and prepared have the order of item.files.
	content  [][]byte
	prepared []durable.Replacement
	leaf     *x509.Certificate
}

// renew creates the new content of an item.
func (r *run) renew(old held) (made, error) {
	ca, err := r.signer(old)
	if err != nil {
		return made{}, err
	}
	leaf, key, err := certificates.Renew(old.leaf, ca, certificates.Renewal{Now: r.Now(), For: certificates.Year, NewKey: r.NewKey})
	if err != nil {
		return made{}, fmt.Errorf("renew %s: %w", r.at(old.mainFile()), err)
	}
	encoded, err := certificates.EncodeKey(key)
	if err != nil {
		return made{}, fmt.Errorf("renew %s: %w", r.at(old.mainFile()), err)
	}
	m := made{old: old, leaf: leaf, content: [][]byte{encoded, certificates.EncodeChain(leaf)}}
	if old.item.kubeconfig() {
		content, err := old.files[0].WithPair(m.content[1], encoded)
		if err != nil {
			return made{}, err
		}
		m.content = [][]byte{content}
	}
	return m, nil
}

// signer returns the CA that signs the item's new certificate. The CA must have signed the present certificate, because
// EKCO cannot know whether all clients already trust a new CA. An administrator may use another CA.
func (r *run) signer(old held) (certificates.Authority, error) {
	ca, err := r.authority(old.ca)
	if err != nil {
		return ca, fmt.Errorf("renew %s: %w", r.at(old.mainFile()), err)
	}
	ca = ca.For(old.leaf, r.Now())
	path := r.at("pki/" + old.ca + ".crt")
	switch {
	case certificates.SignedBy(old.leaf, ca.Certificate), r.ByHand && ca.SignedByOther(old.leaf):
		return ca, nil
	case ca.SignedByOther(old.leaf):
		return ca, fmt.Errorf("renew %s: the CA is being replaced, and the CA in %s whose key is on this host did not sign it; "+
			"when all clients trust that CA, run on this host: ekco rotate-certs --ttl=87600h", r.at(old.mainFile()), path)
	default:
		return ca, fmt.Errorf("renew %s: %s, which is the CA for it, did not sign it; renew it with the CA that issued it, or recreate it with kubeadm",
			r.at(old.mainFile()), path)
	}
}

// authority returns a CA. It reads each CA only once.
func (r *run) authority(name string) (certificates.Authority, error) {
	if known, has := r.authorities[name]; has {
		return known.ca, known.err
	}
	ca, err := certificates.ReadAuthority(r.at("pki"), name, r.Now())
	r.authorities[name] = authority{ca, err}
	return ca, err
}

type authority struct {
	ca  certificates.Authority
	err error
}

// prepare writes the new files next to the old files, and checks them. The caller must hold the locks of the directories.
func (r *run) prepare(m *made) error {
	for i, path := range m.old.item.files() {
		r.effect("prepare " + path)
		temp, err := r.prepareFile(r.at(path), m.content[i])
		if err != nil {
			return errors.Join(fmt.Errorf("prepare %s: %w", r.at(path), err), m.discard())
		}
		m.prepared = append(m.prepared, temp)
	}
	if err := r.check(m); err != nil {
		return errors.Join(fmt.Errorf("check the new %s: %w; the old one is kept", r.at(m.old.mainFile()), err), m.discard())
	}
	return nil
}

func (m *made) discard() (err error) {
	for _, temp := range m.prepared {
		err = errors.Join(err, temp.Discard())
	}
	return err
}

// check reads the written files, and checks them like the programs that use them.
func (r *run) check(m *made) error {
	temps := map[string]string{}
	for i, path := range m.old.item.files() {
		temps[path] = m.prepared[i].Temp()
	}
	written, err := m.old.read(func(path string) string { return temps[path] })
	if err != nil {
		return err
	}
	ca, err := r.signer(m.old)
	if err != nil {
		return err
	}
	if !written.leaf.Equal(m.leaf) {
		return errors.New("it does not have the new certificate")
	}
	if err := verify(written.leaf, ca.Certificate, r.Now()); err != nil {
		return err
	}
	if what := differs(m.old.leaf, written.leaf); what != "" {
		return fmt.Errorf("its %s would change", what)
	}
	if m.old.item.kubeconfig() {
		return sameButPair(m.old, written)
	}
	return nil
}

// verify checks a certificate like a TLS peer.
func verify(leaf, ca *x509.Certificate, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	usages := leaf.ExtKeyUsage
	if len(usages) == 0 {
		usages = []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	}
	for _, usage := range usages {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			return err
		}
	}
	return nil
}

// differs returns the name of a property that differs between the old and the renewed certificate, or "".
func differs(old, renewed *x509.Certificate) string {
	switch {
	case !bytes.Equal(old.RawSubject, renewed.RawSubject):
		return "subject"
	case !slices.Equal(certificates.Names(old), certificates.Names(renewed)):
		return "list of names"
	case old.KeyUsage != renewed.KeyUsage, !slices.Equal(old.ExtKeyUsage, renewed.ExtKeyUsage):
		return "list of usages"
	case certificates.KindOf(old.PublicKey) != certificates.KindOf(renewed.PublicKey):
		return "kind of key"
	case old.IsCA != renewed.IsCA:
		return "CA flag"
	}
	return ""
}

// sameButPair returns an error if two kubeconfigs differ in more than certificate and key, or if clients could not load
// the new kubeconfig.
func sameButPair(old, renewed held) error {
	before, after := old.kubeconfig, renewed.kubeconfig
	if before.User != after.User || before.Server != after.Server || !bytes.Equal(before.CA.Content, after.CA.Content) {
		return errors.New("more than its certificate would change")
	}
	if _, err := clientcmd.Load(renewed.files[0].Content); err != nil {
		return errors.New("its clients could not load it")
	}
	return nil
}
