package primary_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
	"github.com/replicatedhq/ekco/internal/sim/rights"
	"github.com/replicatedhq/ekco/journal"
)

// inPod runs a rotation with the rights of EKCO's pod.
func (w *world) inPod() (result primary.Result, err error) {
	w.t.Helper()
	if os.Geteuid() != 0 {
		w.t.Skip("only root can have the rights of a pod")
	}
	if failed := rights.Only([]string{"CHOWN"}, func() { result, err = w.run() }); failed != nil {
		w.t.Fatal(failed)
	}
	return result, err
}

func (w *world) give(path string, uid, gid int, mode fs.FileMode) {
	w.t.Helper()
	if err := errors.Join(os.Chown(filepath.Join(w.dir(), path), uid, gid), os.Chmod(filepath.Join(w.dir(), path), mode)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) has(path string, uid, gid int, mode fs.FileMode) {
	w.t.Helper()
	info, err := os.Stat(filepath.Join(w.dir(), path))
	if err != nil {
		w.t.Fatal(err)
	}
	if is := info.Sys().(*syscall.Stat_t); int(is.Uid) != uid || int(is.Gid) != gid || info.Mode().Perm() != mode {
		w.t.Errorf("%s is %d:%d %s, want %d:%d %s", path, is.Uid, is.Gid, info.Mode(), uid, gid, mode)
	}
}

// TestAPodRenewsAdminConfAsKURLLeavesIt: kURL gives it to a group of administrators.
func TestAPodRenewsAdminConfAsKURLLeavesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		before := w.leaves()
		w.give("admin.conf", 0, 27, 0o440)
		w.give("pki/etcd/peer.crt", 1001, 1001, 0o644)
		result, err := w.inPod()
		if err != nil || len(result.Rotated) != 11 || len(result.Restarted) != 3 {
			t.Errorf("%v: %+v", err, result)
		}
		w.tidy()
		w.renewed(before, primarytest.Items()...)
		w.has("admin.conf", 0, 27, 0o440)
		w.has("pki/etcd/peer.crt", 1001, 1001, 0o644)
	})
}

func TestFilesThatAPodMayNotChangeHoldUpNoOther(t *testing.T) {
	for name, change := range map[string]func(*world){
		"the key":                  func(w *world) { w.give("pki/etcd/peer.key", 1001, 1001, 0o600) },
		"the directory":            func(w *world) { w.give("pki/etcd", 1001, 1001, 0o755) },
		"the directory and a rest": func(w *world) { w.Write("pki/etcd/.peer.key.ekco", 0o600, nil); w.give("pki/etcd", 1001, 1001, 0o755) },
		"a closed directory":       func(w *world) { w.give("pki/etcd", 1001, 1001, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 5*day)
				before := w.leaves()
				change(w)
				result, err := w.inPod()
				if !errors.Is(err, primary.ErrFailed) || !slices.Contains(result.Rotated, "admin.conf") || !slices.Contains(result.Rotated, "pki/front-proxy-client.crt") {
					t.Errorf("%v: %+v", err, result)
				}
				if !w.said("run on this host: ekco rotate-certs") || len(result.Down) > 0 || !w.Leaf("pki/etcd/peer").Equal(before["pki/etcd/peer"]) || !w.Whole("pki/etcd/peer") {
					t.Errorf("%+v, said is %q", result, w.lines)
				}
				if failed := rights.Only(nil, func() {
					found := primary.Look(w.dir(), 30*day, time.Now(), fsmcertificates.IsDue)
					if said := strings.Join(found.Problems, "\n"); strings.Contains(said, "run on this host") == strings.HasPrefix(name, "the directory") {
						t.Errorf("a look says %q", said)
					}
				}); failed != nil {
					t.Fatal(failed)
				}
			})
		})
	}
}

func TestTheEndOfACertificateWithoutItsKeyIsKnown(t *testing.T) {
	for name, change := range map[string]func(*world){
		"another user's": func(w *world) { w.give("pki/etcd/peer.key", 1001, 1001, 0o600) },
		"no key":         func(w *world) { w.Write("pki/etcd/peer.key", 0o600, []byte("x")) },
		"another key":    func(w *world) { w.Write("pki/etcd/peer.key", 0o600, w.Read("pki/etcd/server.key")) },
		"away": func(w *world) {
			if err := os.Remove(filepath.Join(w.dir(), "pki/etcd/peer.key")); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		w := newWorld(t, 5*day)
		want := certificates.Fingerprint(w.Leaf("pki/etcd/peer"))
		change(w)
		if failed := rights.Only(nil, func() {
			found := primary.Look(w.dir(), 30*day, time.Now(), fsmcertificates.IsDue)
			known := slices.ContainsFunc(found.Certificates, func(c journal.Certificate) bool { return c.Fingerprint == want })
			if !known || len(found.Certificates) != 11 || len(found.Problems) != 1 || !strings.Contains(found.Problems[0], "peer.key") {
				t.Errorf("%s: known is %t: %d certificates, %q", name, known, len(found.Certificates), found.Problems)
			}
		}); failed != nil {
			t.Fatal(failed)
		}
	}
}

// TestAnAdministratorIsNotToldToRunWhatRuns: the command is at work on this host.
func TestAnAdministratorIsNotToldToRunWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		w.ByHand = true
		w.give("pki/etcd/peer.key", 1001, 1001, 0o600)
		if _, err := w.inPod(); !errors.Is(err, primary.ErrFailed) || w.said("run on this host") {
			t.Errorf("%v: said is %q", err, w.lines)
		}
	})
}
