package primary_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	found := primary.Look(w.dir(), 30*day, time.Now())
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
	found = primary.Look(w.dir(), 30*day, time.Now())
	if len(found.Certificates) != 9 || len(found.Problems) != 2 || !strings.Contains(found.Problems[0], "front-proxy-client.crt: read ") || !strings.Contains(found.Problems[1], "peer.crt: it has no PEM block") {
		t.Errorf("it is %+v", found)
	}
	if found = primary.Look(w.dir(), day, time.Now()); len(found.Problems) != 1 {
		t.Errorf("nobody wants to renew it yet: %q", found.Problems)
	}
	raw, err := json.Marshal(found)
	if err != nil || len(raw) > hosttask.MaxResult/2 || strings.Contains(string(raw), "PRIVATE") {
		t.Errorf("%v: %d bytes go on record: %s", err, len(raw), raw)
	}
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
