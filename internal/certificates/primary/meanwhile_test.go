package primary_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
)

// TestAManifestThatSomebodyChangesMeanwhileIsNotPutBack, as the installer does while EKCO waits for the
// API server.
func TestAManifestThatSomebodyChangesMeanwhileIsNotPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		say := w.Say
		w.Say = func(line string) {
			say(line)
			if strings.HasPrefix(line, "Restarting kube-apiserver") {
				w.Write("manifests/kube-scheduler.yaml", 0o600, bytes.ReplaceAll(w.Read("manifests/kube-scheduler.yaml"), []byte("--v=2"), []byte("--v=3")))
			}
		}
		if result := w.rotate(); len(result.Restarted) != 3 {
			t.Errorf("it is %+v", result)
		}
		if manifest := string(w.Read("manifests/kube-scheduler.yaml")); !strings.Contains(manifest, "--v=3") || !strings.Contains(manifest, "ekco.kurl.sh/certificates") {
			t.Errorf("the manifest is\n%s", manifest)
		}
		w.clean()
	})
}

// TestWhatSomebodyChangesMeanwhileIsWhatIsRenewed: "ekco regen-cert", and who sets another server, write
// after the certificates were read and before they are replaced.
func TestWhatSomebodyChangesMeanwhileIsWhatIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		before := w.leaves()
		w.ServerTime = func(context.Context, string) (time.Time, error) {
			names := certificates.APIServerNames{Dir: w.dir() + "/pki", Add: []string{"lb.example.com"}, Renewal: certificates.Renewal{Now: time.Now(), NewKey: keys.New}}
			if _, err := names.Change(t.Context()); err != nil {
				t.Error(err)
			}
			w.Write("admin.conf", 0o600, bytes.ReplaceAll(w.Read("admin.conf"), []byte("https://10.0.0.1:6443"), []byte("https://lb.example.com:6444")))
			return time.Now(), nil
		}
		w.rotate()
		w.clean()
		w.renewed(before, primarytest.Items()...)
		if leaf := w.Leaf("pki/apiserver"); !slices.Contains(leaf.DNSNames, "lb.example.com") || time.Until(leaf.NotAfter) < 300*day {
			t.Errorf("it has %q until %s", leaf.DNSNames, leaf.NotAfter)
		}
		if !bytes.Contains(w.Read("admin.conf"), []byte("server: https://lb.example.com:6444")) {
			t.Error("the old server was put back")
		}
	})
}

// TestWhatSomebodyRenewsMeanwhileIsLeftAlone, such as kubeadm.
func TestWhatSomebodyRenewsMeanwhileIsLeftAlone(t *testing.T) {
	for _, byHand := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 5*day)
			w.TTL, w.ByHand = 400*day, byHand
			w.RemoveAllExcept("pki/apiserver", "admin.conf")
			w.ServerTime = func(context.Context, string) (time.Time, error) {
				w.Make(time.Now().Add(300 * day))
				w.RemoveAllExcept("pki/apiserver")
				return time.Now(), nil
			}
			if result := w.rotate(); len(result.Rotated) != 0 {
				t.Errorf("by hand %v: it is %+v", byHand, result)
			}
			if left := time.Until(w.Leaf("pki/apiserver").NotAfter); left > 301*day {
				t.Errorf("it is valid for %s", left)
			}
			w.tidy()
		})
	}
}

// TestTheClockIsComparedWithThisCluster: an administrator's admin.conf may lead to another one.
func TestTheClockIsComparedWithThisCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		w.Write("admin.conf", 0o600, bytes.ReplaceAll(w.Read("admin.conf"), []byte("https://10.0.0.1:6443"), []byte("https://elsewhere:6443")))
		w.ServerTime = func(_ context.Context, server string) (time.Time, error) {
			if server != "https://10.0.0.1:6443" {
				t.Errorf("%s is asked for its time", server)
			}
			return time.Now(), nil
		}
		w.rotate()
	})
}

// renews has somebody else renew a kubeconfig, for two years.
func (w *world) renews(path string) *x509.Certificate {
	w.t.Helper()
	ca, err := certificates.ReadAuthority(filepath.Join(w.dir(), "pki"), "ca", time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	leaf, key, err := certificates.Renew(w.Leaf(path), ca, certificates.Renewal{Now: time.Now(), For: 2 * certificates.Year, NewKey: keys.New})
	if err != nil {
		w.t.Fatal(err)
	}
	encoded, err := certificates.EncodeKey(key)
	if err != nil {
		w.t.Fatal(err)
	}
	content, err := certificates.File{Name: path, Content: w.Read(path)}.WithPair(certificates.EncodeChain(leaf), encoded)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Write(path, 0o600, content)
	return leaf
}

// TestWhatSomebodyRenewedMeanwhileIsNotPutBack where a component does not come back.
func TestWhatSomebodyRenewedMeanwhileIsNotPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		had := w.Loaded("kube-scheduler")
		w.Refuses = func(component string, loaded []string) string {
			if component == "kube-scheduler" && !slices.Equal(loaded, had) {
				return "connection refused"
			}
			return ""
		}
		var newer *x509.Certificate
		say := w.Say
		w.Say = func(line string) {
			say(line)
			if strings.HasPrefix(line, "Restarting kube-scheduler") {
				newer = w.renews("scheduler.conf")
			}
		}
		if _, err := w.run(); !errors.Is(err, primary.ErrFailed) || newer == nil {
			t.Fatalf("%v, %v", err, newer)
		}
		if !w.Leaf("scheduler.conf").Equal(newer) {
			t.Error("the old one was put back over it")
		}
	})
}

// TestAManifestThatSomebodyChangedSinceIsNotPutBack where no kubelet has made another pod of it.
func TestAManifestThatSomebodyChangedSinceIsNotPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		w.Down = true
		const manifest = "manifests/kube-scheduler.yaml"
		_, err := w.Before(func(effect string) {
			if strings.HasPrefix(effect, "mark, after ") && strings.HasSuffix(effect, manifest) {
				w.Write(manifest, 0o600, bytes.ReplaceAll(w.Read(manifest), []byte("--v=2"), []byte("--v=3")))
			}
		}).Run(w.t.Context())
		if !errors.Is(err, primary.ErrFailed) || !bytes.Contains(w.Read(manifest), []byte("--v=3")) {
			t.Errorf("%v; the manifest is\n%s", err, w.Read(manifest))
		}
	})
}
