package primary_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/hosttask"
	"github.com/replicatedhq/ekco/journal"
)

func TestWhoLooksFindsAllAndWhatWouldKeepThemFromBeingRenewed(t *testing.T) {
	w := newWorld(t, 5*day)
	if err := os.Remove(filepath.Join(w.dir(), "super-admin.conf")); err != nil {
		t.Fatal(err)
	}
	found := primary.Look(w.dir(), 30*day, time.Now(), fsmcertificates.IsDue)
	if len(found.Certificates) != 10 || len(found.Problems) != 0 || time.Since(found.Clock).Abs() > time.Minute {
		t.Errorf("it is %+v", found)
	}
	if first := found.Certificates[0]; first.At != w.dir()+"/admin.conf" || first.Subject != "CN=kubernetes-admin,O=kubeadm:cluster-admins" || first.Fingerprint != certificates.Fingerprint(w.Leaf("admin.conf")) {
		t.Errorf("the first is %+v", first)
	}
	if err := os.Remove(filepath.Join(w.dir(), "pki", "front-proxy-ca.key")); err != nil {
		t.Fatal(err)
	}
	w.Write("pki/etcd/peer.crt", 0o644, []byte("x"))
	found = primary.Look(w.dir(), 30*day, time.Now(), fsmcertificates.IsDue)
	if len(found.Certificates) != 9 || len(found.Problems) != 2 || !strings.Contains(found.Problems[0], "front-proxy-client.crt: read ") || !strings.Contains(found.Problems[1], "peer.crt: it has no PEM block") {
		t.Errorf("it is %+v", found)
	}
	for _, one := range found.Certificates {
		if is := strings.HasSuffix(one.At, "front-proxy-client.crt"); one.CannotRenew != is {
			t.Errorf("%s: cannot be renewed is %t", one.At, one.CannotRenew)
		}
	}
	if found = primary.Look(w.dir(), day, time.Now(), fsmcertificates.IsDue); len(found.Problems) != 1 {
		t.Errorf("nobody wants to renew it yet: %q", found.Problems)
	}
	raw, err := json.Marshal(found)
	if err != nil || len(raw) > hosttask.MaxResult/2 || strings.Contains(string(raw), "PRIVATE") {
		t.Errorf("%v: %d bytes go on record: %s", err, len(raw), raw)
	}
}

// TestWhoLooksFindsComponentsThatARotationWouldNotRestart compares what cannot be renewed with what a rotation does.
func TestWhoLooksFindsComponentsThatARotationWouldNotRestart(t *testing.T) {
	for name, test := range map[string]struct {
		manifest, content string
		want              []string
	}{
		"of another kind": {"kube-scheduler", "kind: Job\n", []string{"scheduler.conf"}},
		"empty":           {"kube-controller-manager", "", []string{"controller-manager.conf"}},
		"without a probe": {"kube-scheduler", "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: kube-scheduler, command: [kube-scheduler, --secure-port=0]}]}\n", []string{"scheduler.conf"}},
		"away":            {"kube-scheduler", "-", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 5*day)
				path := "manifests/" + test.manifest + ".yaml"
				if w.Write(path, 0o600, []byte(test.content)); test.content == "-" {
					w.Remove(path)
				}
				found := primary.Look(w.dir(), 30*day, time.Now(), fsmcertificates.IsDue)
				var cannot []string
				for _, one := range found.Certificates {
					if one.CannotRenew {
						cannot = append(cannot, filepath.Base(one.At))
					}
				}
				result, _ := w.run()
				if !slices.Equal(cannot, test.want) || len(found.Problems) != len(test.want) || len(result.Failed) != len(test.want) {
					t.Errorf("cannot be renewed are %q because %q, want %q; a rotation fails with %q", cannot, found.Problems, test.want, result.Failed)
				}
			})
		})
	}
}

// TestAnotherUserThatExpiresIsAProblem: EKCO renews the user of the current context alone.
func TestAnotherUserThatExpiresIsAProblem(t *testing.T) {
	w, other := newWorld(t, 90*day), newWorld(t, 5*day)
	users := func(config []byte) string { _, users, _ := strings.Cut(string(config), "users:\n"); return users }
	whole := string(w.Read("admin.conf")) + strings.ReplaceAll(users(other.Read("admin.conf")), "kubernetes-admin", "dev")
	w.Write("admin.conf", 0o600, []byte(whole))
	found := primary.Look(w.dir(), 30*day, time.Now(), fsmcertificates.IsDue)
	if len(found.Certificates) != 11 || len(found.Problems) != 1 || !strings.Contains(found.Problems[0], "another user") {
		t.Errorf("found is %+v", found)
	}
	if slices.ContainsFunc(found.Certificates, func(one journal.Certificate) bool { return one.CannotRenew }) {
		t.Errorf("the user of the current context can be renewed: %+v", found)
	}
	if found := primary.Look(w.dir(), day, time.Now(), fsmcertificates.IsDue); len(found.Problems) != 0 {
		t.Errorf("found is %+v", found)
	}
}

// TestALinkThatLeadsNowhereIsAProblem: in its pod EKCO has only /etc/kubernetes of the host.
func TestALinkThatLeadsNowhereIsAProblem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 90*day)
		pki, elsewhere := filepath.Join(w.dir(), "pki"), filepath.Join(t.TempDir(), "pki")
		if err := errors.Join(os.Rename(pki, elsewhere), os.Symlink(elsewhere, pki)); err != nil {
			t.Fatal(err)
		}
		if found := primary.Look(w.dir(), day, time.Now(), fsmcertificates.IsDue); len(found.Certificates) != 11 || len(found.Problems) != 0 {
			t.Errorf("on the host it is followed: %+v", found)
		}
		if err := os.Rename(elsewhere, elsewhere+".away"); err != nil {
			t.Fatal(err)
		}
		want := pki + ": it is a symbolic link to " + elsewhere
		if found := primary.Look(w.dir(), day, time.Now(), fsmcertificates.IsDue); len(found.Certificates) != 4 || len(found.Problems) != 1 || !strings.Contains(found.Problems[0], want) {
			t.Errorf("found is %+v", found)
		}
		w.TTL = day
		result, err := w.run()
		if !errors.Is(err, primary.ErrFailed) || len(result.Missing) != 0 || len(result.Failed) != 1 || !strings.Contains(result.Failed[0], want) {
			t.Errorf("%v: it is %+v", err, result)
		}
	})
}

func TestOfARotationIsToldWhatOthersProveItBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		began := time.Now()
		renewed := w.Renewed(w.rotate())
		if len(renewed.Rotated) != 11 || renewed.Served[6443] != certificates.Fingerprint(w.Leaf("pki/apiserver")) || len(renewed.Served) != 3 {
			t.Errorf("it is %+v", renewed)
		}
		at := slices.IndexFunc(renewed.Components, func(c journal.ControlPlaneComponent) bool { return c.Name == "kube-scheduler" })
		if c := renewed.Components[at]; len(c.Hash) != 32 || !c.Since.Equal(began) {
			t.Errorf("%+v, began at %s", c, began)
		}
	})
}
