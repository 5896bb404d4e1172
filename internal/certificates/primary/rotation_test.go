package primary_test

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	fsmcertificates "github.com/replicatedhq/ekco/fsm/certificates"
	"github.com/replicatedhq/ekco/internal/certificates"
	"github.com/replicatedhq/ekco/internal/certificates/certificatestest"
	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
	"github.com/replicatedhq/ekco/internal/sim/tempdir"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == fullDisk {
		os.Exit(onFullDisk(os.Args[2], os.Args[3]))
	}
	tempdir.InMemory()
	goleak.VerifyTestMain(m)
}

const day = 24 * time.Hour

// world is a primary with its kubelet, whose certificates are due.
type world struct {
	*primarytest.Kubelet
	primary.Rotation
	t     testing.TB
	lines []string
}

// keys are those of all worlds, so that they have different ones.
var keys certificatestest.Keys

func newWorld(t testing.TB, left time.Duration) *world {
	t.Helper()
	return newWorldOf(t, left, certificates.ECDSAP256, keys.New)
}

func newWorldOf(t testing.TB, left time.Duration, kind certificates.KeyKind, newKey func(certificates.KeyKind) (crypto.Signer, error)) *world {
	t.Helper()
	host := &primarytest.Host{T: t, Dir: t.TempDir(), NewKey: newKey, Kind: kind}
	w := &world{Kubelet: &primarytest.Kubelet{Host: host}, t: t}
	w.Rotation = primary.Rotation{
		Dir: host.Dir, TTL: 30 * day, IsDue: fsmcertificates.IsDue, Now: time.Now, Kubelet: w.Kubelet, NewKey: newKey, Patience: time.Minute,
		ServerTime: func(context.Context, string) (time.Time, error) { return time.Now(), nil },
		Say:        func(line string) { w.lines = append(w.lines, line) },
	}
	host.Make(time.Now().Add(left))
	return w
}

func (w *world) dir() string { return w.Host.Dir }

func (w *world) run() (primary.Result, error) {
	w.lines = nil
	return w.Run(w.t.Context())
}

// rotate wants a rotation to do all that is to be done.
func (w *world) rotate() primary.Result {
	w.t.Helper()
	result, err := w.run()
	if err != nil {
		w.t.Fatalf("%v; it said\n%s", err, strings.Join(w.lines, "\n"))
	}
	return result
}

func (w *world) said(line string) bool {
	return slices.ContainsFunc(w.lines, func(said string) bool { return strings.Contains(said, line) })
}

func (w *world) leaves() map[string]*x509.Certificate {
	leaves := map[string]*x509.Certificate{}
	for _, item := range primarytest.Items() {
		leaves[item] = w.Leaf(item)
	}
	return leaves
}

// tidy wants nothing to lie about.
func (w *world) tidy() {
	w.t.Helper()
	err := filepath.WalkDir(w.dir(), func(path string, entry os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), ".") {
			w.t.Errorf("%s is left", path)
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
}

// clean wants nothing to lie about, and everything to belong together and to be in use.
func (w *world) clean() {
	w.t.Helper()
	w.tidy()
	for _, item := range primarytest.Items() {
		if !w.Whole(item) {
			w.t.Errorf("%s is no pair", item)
		}
		info, err := os.Stat(filepath.Join(w.dir(), strings.TrimSuffix(item, ".conf")) + map[bool]string{true: ".conf", false: ".key"}[strings.HasSuffix(item, ".conf")])
		if err != nil || info.Mode().Perm() != 0o600 {
			w.t.Errorf("%s: %v, %v", item, info.Mode(), err)
		}
	}
	for component, items := range map[string][]string{
		"kube-apiserver":          {"pki/apiserver-etcd-client", "pki/apiserver-kubelet-client", "pki/front-proxy-client"},
		"kube-controller-manager": {"controller-manager.conf"}, "kube-scheduler": {"scheduler.conf"},
	} {
		var want []string
		for _, item := range items {
			want = append(want, certificates.Fingerprint(w.Leaf(item)))
		}
		if diff := cmp.Diff(want, w.Loaded(component)); diff != "" {
			w.t.Errorf("%s has other certificates than there are:\n%s", component, diff)
		}
	}
}

// renewed wants these items to be new, and all others to be as they were.
func (w *world) renewed(before map[string]*x509.Certificate, items ...string) {
	w.t.Helper()
	for item, after := range w.leaves() {
		if is := !after.Equal(before[item]); is != slices.Contains(items, item) {
			w.t.Errorf("that %s is new is %v", item, is)
		}
	}
}

func TestAllThatIsDueIsRenewedAndWhoNeedsItIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		before := w.leaves()
		started := map[string]int{}
		for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd"} {
			started[component] = w.Starts(component)
		}
		result := w.rotate()
		w.clean()
		w.renewed(before, primarytest.Items()...)
		if len(result.Rotated) != 11 || !slices.Equal(result.Restarted, []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}) {
			t.Errorf("it is %+v", result)
		}
		for component, starts := range started {
			want := starts + 1
			if component == "etcd" {
				want = starts
			}
			if got := w.Starts(component); got != want {
				t.Errorf("%s was started %d times, want %d", component, got, want)
			}
		}
		for item, after := range w.leaves() {
			ignored := cmpopts.IgnoreFields(x509.Certificate{}, "Raw", "RawTBSCertificate", "RawSubjectPublicKeyInfo", "Signature", "PublicKey", "SerialNumber", "NotBefore", "NotAfter", "SubjectKeyId", "Extensions")
			if diff := cmp.Diff(*before[item], *after, ignored, cmpopts.IgnoreUnexported(x509.Certificate{})); diff != "" {
				t.Errorf("%s: what should be kept is not (-old +new):\n%s", item, diff)
			}
		}
		for _, line := range []string{"Rotated ", "Restarting kube-apiserver", "Back: kube-scheduler answers"} {
			if !w.said(line) {
				t.Errorf("it does not say %q but\n%s", line, strings.Join(w.lines, "\n"))
			}
		}
	})
}

func TestWhatIsNotDueIsLeftAloneAndRestartsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 100*day)
		before, manifest, starts := w.leaves(), w.Read("manifests/kube-apiserver.yaml"), w.Starts("kube-apiserver")
		if result := w.rotate(); len(result.Rotated)+len(result.Restarted)+len(result.Missing) != 0 {
			t.Errorf("it is %+v", result)
		}
		w.renewed(before)
		if string(manifest) != string(w.Read("manifests/kube-apiserver.yaml")) || w.Starts("kube-apiserver") != starts {
			t.Error("the API server was restarted")
		}
		w.TTL = 1000 * day // the longest that counts is two thirds of a life
		w.rotate()
		w.renewed(before, primarytest.Items()...)
		before = w.leaves()
		w.rotate()
		w.renewed(before)
	})
}

func TestOnlyWhoHasAnotherCertificateIsRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 100*day)
		fresh := newWorld(t, 5*day) // of another cluster, so that its CA did not sign
		for _, item := range []string{"admin.conf", "scheduler.conf"} {
			w.Write(item, 0o600, fresh.Read(item))
		}
		w.Write("pki/ca.crt", 0o644, fresh.Read("pki/ca.crt"))
		w.Write("pki/ca.key", 0o600, fresh.Read("pki/ca.key"))
		before := w.leaves()
		api, controllers := w.Starts("kube-apiserver"), w.Starts("kube-controller-manager")
		result := w.rotate()
		w.clean()
		w.renewed(before, "admin.conf", "scheduler.conf")
		if !slices.Equal(result.Restarted, []string{"kube-scheduler"}) || w.Starts("kube-apiserver") != api || w.Starts("kube-controller-manager") != controllers {
			t.Errorf("it is %+v", result)
		}
	})
}

func TestWhatIsMissingIsSaidAndLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		for _, path := range []string{"super-admin.conf", "pki/etcd/server.crt", "pki/etcd/server.key", "manifests/kube-scheduler.yaml"} {
			if err := os.Remove(filepath.Join(w.dir(), path)); err != nil {
				t.Fatal(err)
			}
		}
		result := w.rotate()
		if len(result.Rotated) != 9 || !slices.Equal(result.Missing, []string{"super-admin.conf", "pki/etcd/server.crt"}) || slices.Contains(result.Restarted, "kube-scheduler") {
			t.Errorf("it is %+v", result)
		}
		if !w.said("Missing "+w.dir()+"/super-admin.conf") || !w.said("restart kube-scheduler yourself") {
			t.Errorf("it says %q", w.lines)
		}
	})
}

func TestAComponentThatDoesNotComeBackGetsWhatItHad(t *testing.T) {
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		t.Run(component, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 5*day)
				before, had := w.leaves(), w.Loaded(component)
				w.Refuses = func(asked string, loaded []string) string {
					if asked == component && !slices.Equal(loaded, had) {
						return "connection refused"
					}
					return ""
				}
				result, err := w.run()
				if !errors.Is(err, primary.ErrFailed) || len(result.Restarted) != 2 || slices.Contains(result.Restarted, component) {
					t.Errorf("%v: %+v", err, result)
				}
				w.clean()
				var kept []string
				for item, leaf := range w.leaves() {
					if leaf.Equal(before[item]) {
						kept = append(kept, certificates.Fingerprint(leaf))
					}
				}
				slices.Sort(kept)
				slices.Sort(had)
				if !slices.Equal(kept, had) {
					t.Errorf("kept are %d", len(kept))
				}
				for _, want := range []string{"Error: " + component + " has not come back", "connection refused", "I am " + component, "its old certificates were restored, and it answers"} {
					if !w.said(want) {
						t.Errorf("it does not say %q but\n%s", want, strings.Join(w.lines, "\n"))
					}
				}
				w.Refuses = nil
				w.rotate()
				w.clean()
				w.renewed(before, primarytest.Items()...)
			})
		})
	}
}

// TestWhoNeedsTheAPIServerIsNotRestartedWhileItIsAway: it would not come back either, and be away for nothing.
func TestWhoNeedsTheAPIServerIsNotRestartedWhileItIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		before, starts, answered := w.leaves(), w.Starts("kube-scheduler"), w.Starts("kube-apiserver")
		w.Refuses = func(asked string, _ []string) string {
			if asked == "kube-apiserver" && w.Starts(asked) > answered {
				return "connection refused"
			}
			return ""
		}
		result, err := w.run()
		if !errors.Is(err, primary.ErrFailed) || len(result.Restarted) > 0 || w.Starts("kube-scheduler") != starts {
			t.Errorf("%v: %+v", err, result)
		}
		for _, want := range []string{"its old certificates were restored, but it does not answer yet: connection refused", "Error: kube-apiserver does not answer, so kube-scheduler, which needs it, is not restarted for its new certificates"} {
			if !w.said(want) {
				t.Errorf("it does not say %q but\n%s", want, strings.Join(w.lines, "\n"))
			}
		}
		w.Refuses = nil
		if result := w.rotate(); len(result.Restarted) != 3 {
			t.Errorf("with the API server: %+v", result)
		}
		w.clean()
		w.renewed(before, primarytest.Items()...)
	})
}

func TestAKubeletThatIsDownHasEverythingAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		starts := w.Starts("kube-apiserver")
		manifest := w.Read("manifests/kube-apiserver.yaml")
		w.Down = true
		if _, err := w.run(); !errors.Is(err, primary.ErrFailed) || !w.said("the kubelet has not restarted it") {
			t.Errorf("%v, it says %q", err, w.lines)
		}
		w.Down = false
		if string(manifest) != string(w.Read("manifests/kube-apiserver.yaml")) || w.Starts("kube-apiserver") != starts {
			t.Error("the API server is restarted though nothing has changed")
		}
		w.clean()
	})
}

func TestWhatHasExpiredIsNotPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, -day)
		before := w.leaves()
		w.ServerTime = func(context.Context, string) (time.Time, error) { return time.Time{}, errors.New("connection refused") }
		w.Refuses = func(string, []string) string { return "no etcd" }
		if _, err := w.run(); !errors.Is(err, primary.ErrFailed) || !w.said("have expired, and are not restored") || !w.said("not compared with the API server's") {
			t.Errorf("%v, it says %q", err, w.lines)
		}
		w.clean()
		w.renewed(before, primarytest.Items()...)
		starts := w.Starts("kube-apiserver")
		w.Refuses = nil // the other primaries are renewed as well
		if result := w.rotate(); len(result.Restarted) != 3 || w.Starts("kube-apiserver") != starts {
			t.Errorf("it is %+v", result)
		}
	})
}

func TestTheNewestThreeCopiesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		w.TTL = 1000 * day
		var first []byte
		for i := range 5 {
			if i == 2 {
				first = w.Read("pki/apiserver.key")
			}
			w.rotate()
			time.Sleep(200 * day)
		}
		copies, err := filepath.Glob(filepath.Join(w.dir(), primary.Copies, "*"))
		if err != nil || len(copies) != 3 {
			t.Fatalf("%v: there are %v", err, copies)
		}
		if content, err := os.ReadFile(filepath.Join(copies[0], "pki", "apiserver.key")); err != nil || string(content) != string(first) {
			t.Errorf("%v: the oldest is not what there was", err)
		}
		for _, path := range []string{filepath.Dir(copies[0]), copies[0]} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v: others may look into %s", err, path)
			}
		}
	})
}

func TestOnAWrongClockNothingIsRenewed(t *testing.T) {
	for name, test := range map[string]struct {
		left   time.Duration
		server func(context.Context, string) (time.Time, error)
		want   string
	}{
		"a day ahead of the API server's": {5 * day, func(context.Context, string) (time.Time, error) { return time.Now().Add(-day), nil }, "are 24h0m0s apart"},
		"a day behind it":                 {5 * day, func(context.Context, string) (time.Time, error) { return time.Now().Add(day), nil }, "are 24h0m0s apart"},
		"behind, and nobody to ask":       {certificates.Year + day, func(context.Context, string) (time.Time, error) { return time.Time{}, errors.New("refused") }, "the clock may be wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, test.left)
				w.ServerTime = test.server
				if test.left > certificates.Year { // one is due all the same, so that it is judged
					due := newWorld(t, 5*day)
					w.Write("admin.conf", 0o600, due.Read("admin.conf"))
				}
				before := w.leaves()
				if _, err := w.run(); err == nil || !w.said("Error: ") || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, it says %q", err, w.lines)
				}
				w.renewed(before)
				w.clean()
			})
		})
	}
}

func TestOneThatIsNotValidYetDoesNotKeepTheOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		future := newWorld(t, certificates.Year+day)
		w.Write("admin.conf", 0o600, future.Read("admin.conf"))
		if result, err := w.run(); !errors.Is(err, primary.ErrFailed) || len(result.Rotated) != 10 || !w.said("admin.conf is not valid before") {
			t.Errorf("%v: %+v", err, result)
		}
	})
}

func TestAHostWithoutAControlPlaneIsTold(t *testing.T) {
	w := newWorld(t, 5*day)
	w.Dir = t.TempDir()
	if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "run the command on a primary") {
		t.Error(err)
	}
	w.Dir = filepath.Join(w.Dir, "none")
	if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "none") {
		t.Error(err)
	}
}

func TestOnADiskThatIsFullByThenTheCopiesArePutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		before, had := w.leaves(), w.Loaded("kube-apiserver")
		dir := filepath.Join(w.dir(), "pki")
		w.Refuses = func(asked string, loaded []string) string {
			if asked == "kube-apiserver" && !slices.Equal(loaded, had) {
				return "no"
			}
			return ""
		}
		w.Rotation = w.Fails(func(path string) error {
			if strings.HasPrefix(path, dir) && w.Starts("kube-apiserver") > 1 {
				return syscall.ENOSPC
			}
			return nil
		})
		if _, err := w.run(); !errors.Is(err, primary.ErrFailed) || !w.said("its old certificates were restored, and it answers") {
			t.Errorf("%v, it said %q", err, w.lines)
		}
		w.clean()
		if !w.Leaf("pki/front-proxy-client").Equal(before["pki/front-proxy-client"]) {
			t.Error("it has not its old ones")
		}
	})
}
