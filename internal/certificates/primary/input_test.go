package primary_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
)

const (
	crt = "pki/apiserver-kubelet-client.crt"
	key = "pki/apiserver-kubelet-client.key"
)

// TestBadInputIsSaidLeftAsItIsAndHoldsUpNothingElse has each kind of file that may be found, in the
// place of a certificate, of its key, of a CA or of a kubeconfig.
func TestBadInputIsSaidLeftAsItIsAndHoldsUpNothingElse(t *testing.T) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, test := range map[string]struct {
		path string
		make func(w *world) []byte
		// want is said of it; rotated is how many are all the same.
		want    string
		rotated int
	}{
		"two certificates": {crt, func(w *world) []byte { return join(w.Read(crt), w.Read("pki/ca.crt")) }, crt + ": it has 2 certificates, want one", 10},
		"a key of another": {key, func(w *world) []byte { return w.Read("pki/apiserver.key") }, key + " is not the key of ", 10},
		"the wrong order":  {crt, func(w *world) []byte { return join(w.Read("pki/ca.crt"), w.Read(crt)) }, crt + ": certificate 2 (kube-apiserver-kubelet-client) did not sign", 10},
		"garbage behind":   {crt, func(w *world) []byte { return join(w.Read(crt), []byte("garbage")) }, crt + ": after PEM block 1 there are 7 bytes", 10},
		"an encrypted key": {key, func(*world) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})
		}, key + ": PEM block 1: it is encrypted", 10},
		"an empty certificate":     {crt, func(*world) []byte { return nil }, crt + ": it is empty", 10},
		"no key":                   {key, nil, key + ": the key of ", 10},
		"an empty kubeconfig":      {"scheduler.conf", func(*world) []byte { return nil }, "scheduler.conf: it is empty", 10},
		"a kubeconfig of no YAML":  {"scheduler.conf", func(*world) []byte { return []byte("{") }, "scheduler.conf: it is not a kubeconfig", 10},
		"a CA without its key":     {"pki/front-proxy-ca.key", nil, "front-proxy-ca.key: the CA is external", 10},
		"a CA of another cluster":  {"pki/front-proxy-ca.crt", func(w *world) []byte { return newWorld(w.t, 5*day).Read("pki/front-proxy-ca.crt") }, "front-proxy-ca.key is not the key of ", 10},
		"a CA with another's key":  {"pki/etcd/ca.key", func(w *world) []byte { return w.Read("pki/ca.key") }, "etcd/ca.key is not the key of ", 7},
		"a manifest that is none":  {"manifests/kube-scheduler.yaml", func(*world) []byte { return []byte("kind: Job\n") }, "kube-scheduler.yaml: it is not the manifest of a v1 Pod", 10},
		"a manifest that is empty": {"manifests/kube-apiserver.yaml", func(*world) []byte { return nil }, "kube-apiserver.yaml: it is empty", 8},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 5*day)
				if test.make == nil {
					if err := os.Remove(filepath.Join(w.dir(), test.path)); err != nil {
						t.Fatal(err)
					}
				} else {
					w.Write(test.path, 0o600, test.make(w))
				}
				w.leftAlone(test.path, test.want, test.rotated)
			})
		})
	}
}

// leftAlone wants a rotation to say that of a file, to leave it as it is, and to renew the rest.
func (w *world) leftAlone(path, want string, rotated int) {
	w.t.Helper()
	content, errBefore := os.ReadFile(filepath.Join(w.dir(), path))
	result, err := w.run()
	if !errors.Is(err, primary.ErrFailed) || len(result.Failed) == 0 || len(result.Rotated) != rotated {
		w.t.Errorf("%v: it is %+v", err, result)
	}
	if !slices.ContainsFunc(w.lines, func(line string) bool { return strings.HasPrefix(line, "Error: ") && strings.Contains(line, want) }) {
		w.t.Errorf("it does not say %q but\n%s", want, strings.Join(w.lines, "\n"))
	}
	after, errAfter := os.ReadFile(filepath.Join(w.dir(), path))
	if (errBefore == nil) != (errAfter == nil) || !bytes.Equal(content, after) {
		w.t.Errorf("%s is another", path)
	}
	w.tidy()
}

// TestCAWithKeySigns: while a CA is replaced, kubeadm's documentation has the old and the new one in ca.crt.
func TestCAWithKeySigns(t *testing.T) {
	for name, signer := range map[string]string{"the old one": "old", "the new one": "new"} {
		synctest.Test(t, func(t *testing.T) {
			w, next := newWorld(t, 5*day), newWorld(t, 5*day)
			cas := map[string][]byte{"old": w.Read("pki/ca.crt"), "new": next.Read("pki/ca.crt")}
			keys := map[string][]byte{"old": w.Read("pki/ca.key"), "new": next.Read("pki/ca.key")}
			w.Write("pki/ca.crt", 0o644, slices.Concat(cas["new"], cas["old"]))
			w.Write("pki/ca.key", 0o600, keys[signer])
			if signer == "new" {
				if _, err := w.run(); !errors.Is(err, primary.ErrFailed) || !w.said("the CA is being replaced") {
					t.Errorf("%v: clients may not trust the new CA yet, and it said\n%s", err, strings.Join(w.lines, "\n"))
				}
				w.ByHand = true
			}
			before := w.leaves()
			w.rotate()
			w.clean()
			ca, err := certificates.File{Name: name, Content: cas[signer]}.OneCertificate()
			if err != nil {
				t.Fatal(err)
			}
			if leaf := w.Leaf("pki/apiserver"); leaf.Equal(before["pki/apiserver"]) || leaf.CheckSignatureFrom(ca) != nil {
				t.Errorf("%s has not signed", name)
			}
		})
	}
}

// TestOfCAsWithTheSameKeyTheOneThatHasSignedSignsAgain, although another one is valid longer: clients may not trust
// that.
func TestOfCAsWithTheSameKeyTheOneThatHasSignedSignsAgain(t *testing.T) {
	for name, expires := range map[string]bool{"while it is valid": false, "not after its end": true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 5*day)
			old, err := certificates.ReadAuthority(filepath.Join(w.dir(), "pki"), "ca", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			longer := certificatestest.Resigned(t, old, "kubernetes-2", time.Now().Add(20*certificates.Year))
			w.Write("pki/ca.crt", 0o644, certificates.EncodeChain(longer, old.Certificate))
			if expires {
				time.Sleep(time.Until(old.Certificate.NotAfter) + time.Hour)
				if _, err := w.run(); !errors.Is(err, primary.ErrFailed) || !w.said("the CA is being replaced") {
					t.Errorf("%s: %v: it said\n%s", name, err, strings.Join(w.lines, "\n"))
				}
				return
			}
			before := w.leaves()
			w.rotate()
			w.clean()
			if leaf := w.Leaf("pki/apiserver"); leaf.Equal(before["pki/apiserver"]) || !certificates.SignedBy(leaf, old.Certificate) {
				t.Errorf("%s: another CA has signed", name)
			}
		})
	}
}

func TestALinkInThePlaceOfAFileIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		path := filepath.Join(w.dir(), crt)
		if err := errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path)); err != nil {
			t.Fatal(err)
		}
		w.leftAlone(crt, "it is a symbolic link", 10)
	})
}

func TestAFileThatCannotBeReadIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		path := filepath.Join(w.dir(), crt)
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil { // root reads every file
			t.Fatal(err)
		}
		w.leftAlone(crt, "it is not a regular file", 10)
	})
}

func TestACAThatHasExpiredSignsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		time.Sleep(6 * certificates.Year)
		before := w.leaves()
		if result, err := w.run(); !errors.Is(err, primary.ErrFailed) || len(result.Rotated) != 0 || !w.said("ca.crt (kubernetes) expired at ") {
			t.Errorf("%v: %+v, it says %q", err, result, w.lines)
		}
		w.renewed(before)
	})
}

func TestWhatAnotherCASignedIsNotForEKCOToRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, other := newWorld(t, 5*day), newWorld(t, 5*day)
		w.Write("pki/apiserver.crt", 0o644, other.Read("pki/apiserver.crt"))
		w.Write("pki/apiserver.key", 0o600, other.Read("pki/apiserver.key"))
		w.leftAlone("pki/apiserver.crt", "pki/apiserver.crt: ", 10)
		if !w.said("pki/ca.crt, which is the CA for it, did not sign it") {
			t.Errorf("it says %q", w.lines)
		}
	})
}

// TestOddInputThatIsFineIsRenewed has files that others may write, and that are in order.
func TestOddInputThatIsFineIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		before := w.leaves()
		w.Write(crt, 0o644, bytes.ReplaceAll(w.Read(crt), []byte("\n"), []byte("\r\n")))
		w.Write(key, 0o600, w.pkcs8(key))
		conf := string(w.Read("scheduler.conf"))
		at := strings.Index(conf, "client-key-data: ") + len("client-key-data: ") // the key in two lines
		w.Write("scheduler.conf", 0o600, []byte(conf[:at]+"\"\\\n      "+strings.TrimSpace(conf[at:])+"\"\n"))
		w.rotate()
		w.renewed(before, primarytest.Items()...)
		w.clean()
	})
}

func (w *world) pkcs8(path string) []byte {
	w.t.Helper()
	read, err := certificates.File{Name: path, Content: w.Read(path)}.Key()
	if err != nil {
		w.t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(read)
	if err != nil {
		w.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}
