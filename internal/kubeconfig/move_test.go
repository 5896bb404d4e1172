package kubeconfig

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/durable"
)

// kubelet is a simulated kubelet. It renews its Lease whenever the test asks for it, if it reaches the server
// that its kubeconfig had at its last start.
type kubelet struct {
	path string
	// answer has the servers that answer, reaches those that the kubelet reaches.
	answer, reaches []string
	restarts        []string
	renewed         time.Time
	fails           error
}

func (k *kubelet) restart(context.Context) error {
	content, err := os.ReadFile(k.path)
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(string(content), "server: ")
	server, _, _ := strings.Cut(after, "\n")
	k.restarts = append(k.restarts, server)
	return k.fails
}

func (k *kubelet) leaseRenewed(_ context.Context, server string) (time.Time, error) {
	if !slices.Contains(k.answer, server) {
		return time.Time{}, errors.New("connection refused")
	}
	if n := len(k.restarts); n == 0 || slices.Contains(k.reaches, k.restarts[n-1]) {
		k.renewed = time.Now()
	}
	return k.renewed, nil
}

const former = "https://10.128.0.3:6443"

// moving is a host whose kubelet is to be pointed to the load balancer.
func moving(t *testing.T) (Move, *kubelet) {
	dir, path := etc(t, ofKubelet)
	admin := filepath.Join(dir, "kubernetes", "admin.conf")
	if err := os.WriteFile(admin, []byte(ofKubelet), 0o600); err != nil {
		t.Fatal(err)
	}
	k := &kubelet{path: path, answer: []string{former, balancer}, reaches: []string{former, balancer}}
	return Move{Files: []File{{path}, {admin}}, Server: balancer, Restart: k.restart, LeaseRenewed: k.leaseRenewed}, k
}

// has expects the server in both files, with mode and no copy left.
func (m Move) has(t *testing.T, server string) {
	t.Helper()
	for i, mode := range []os.FileMode{0o640, 0o600} {
		content, err := os.ReadFile(m.Files[i].Path)
		if err != nil || string(content) != strings.Replace(ofKubelet, former, server, 1) {
			t.Errorf("%v: %s", err, content)
		}
		if info, err := os.Stat(m.Files[i].Path); err != nil || info.Mode() != mode {
			t.Errorf("%v: %v", err, info)
		}
	}
	if left, err := filepath.Glob(filepath.Dir(m.Files[0].Path) + "/*" + durable.FormerSuffix); err != nil || len(left) > 0 {
		t.Errorf("left are %q (%v)", left, err)
	}
}

func TestMoveSetsTheServerWhenTheKubeletWorksWithIt(t *testing.T) {
	m, k := moving(t)
	synctest.Test(t, func(t *testing.T) {
		changes, err := m.Do(t.Context())
		if err != nil || len(changes) != 2 || changes[0][0].From != former {
			t.Errorf("%v: %v", err, changes)
		}
	})
	m.has(t, balancer)
	if len(k.restarts) != 1 {
		t.Errorf("restarted with %q", k.restarts)
	}
}

func TestMoveChangesNothingIfNoServerAnswers(t *testing.T) {
	m, k := moving(t)
	k.answer = []string{former}
	synctest.Test(t, func(t *testing.T) {
		if _, err := m.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing was changed: connection refused") {
			t.Error(err)
		}
	})
	m.has(t, former)
	if len(k.restarts) != 0 {
		t.Errorf("restarted with %q", k.restarts)
	}
}

func TestMoveRestoresTheFormerServer(t *testing.T) {
	for name, test := range map[string]struct {
		breaks func(*kubelet, *Move, context.CancelFunc)
		want   string
	}{
		"the kubelet does not reach the new one": {func(k *kubelet, _ *Move, _ context.CancelFunc) { k.reaches = []string{former} }, "the kubelet last renewed its Lease at "},
		"the kubelet is not active again":        {func(k *kubelet, _ *Move, _ context.CancelFunc) { k.fails = errors.New("it is failed") }, "it is failed"},
		"the program is asked to end": {func(k *kubelet, m *Move, cancel context.CancelFunc) {
			k.reaches = []string{former}
			m.Restart = func(ctx context.Context) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				cancel()
				return k.restart(ctx)
			}
		}, "context canceled"},
		"the second file cannot be written": {func(_ *kubelet, m *Move, _ context.CancelFunc) {
			m.Files = append(m.Files, File{m.Files[0].Path + ".none"})
		}, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			m, k := moving(t)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				test.breaks(k, &m, cancel)
				began := time.Now()
				_, err := m.Do(ctx)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Error(err)
				}
				if took := time.Since(began); took > MoveTimeout {
					t.Errorf("it took %s", took)
				}
			})
			k.fails = nil
			if n := len(k.restarts); n > 0 && k.restarts[n-1] != former {
				t.Errorf("restarted with %q", k.restarts)
			}
			if len(k.restarts) == 1 {
				t.Error("the kubelet was not restarted with its former server")
			}
			if name != "the kubelet is not active again" { // then the copies stay, see below
				m.has(t, former)
			}
		})
	}
}

func TestMoveKeepsCopiesOfWhatItCannotRestore(t *testing.T) {
	m, k := moving(t)
	restart := k.restart
	k.reaches = nil
	m.Restart = func(ctx context.Context) error {
		return errors.Join(restart(ctx), os.WriteFile(k.path, []byte("by hand"), 0o640))
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := m.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "another program has changed it since; copies of the former files end in .ekco-former") {
			t.Error(err)
		}
	})
	if content, err := os.ReadFile(k.path); err != nil || string(content) != "by hand" {
		t.Errorf("%v: %s", err, content)
	}
	if content, err := os.ReadFile(k.path + durable.FormerSuffix); err != nil || string(content) != ofKubelet {
		t.Errorf("%v: %s", err, content)
	}
	if info, err := os.Stat(k.path + durable.FormerSuffix); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v: %v", err, info)
	}
}

// interrupted leaves what a change to a server leaves if the host loses its power.
func (m Move) interrupted(t *testing.T, server string) {
	t.Helper()
	for _, file := range m.Files {
		kept := file.Path + durable.FormerSuffix
		if err := durable.Copy(file.Path, kept, largest); err != nil {
			t.Fatal(err)
		}
		if _, err := file.SetServer(server); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{file.Path, kept} { // by the bubble's clock
			if err := os.Chtimes(path, time.Time{}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMoveKeepsTheServerOfAnInterruptedChangeIfItWorks: the former one may be gone.
func TestMoveKeepsTheServerOfAnInterruptedChangeIfItWorks(t *testing.T) {
	for _, changed := range []int{1, 2} { // files, when it was interrupted
		m, k := moving(t)
		k.answer, k.reaches = []string{balancer}, []string{balancer}
		synctest.Test(t, func(t *testing.T) {
			Move{Files: m.Files[:changed]}.interrupted(t, balancer)
			m.Server = "https://nobody.example.com:6443"
			if _, err := m.Do(t.Context()); err == nil {
				t.Error("it moved")
			}
		})
		m.has(t, balancer)
		if len(k.restarts) > 0 {
			t.Errorf("restarted with %q", k.restarts)
		}
	}
}

// TestMoveKeepsCopiesIfAFileCannotGetTheWorkingServer: that file may still need its copy.
func TestMoveKeepsCopiesIfAFileCannotGetTheWorkingServer(t *testing.T) {
	m, k := moving(t)
	k.answer, k.reaches = []string{balancer}, []string{balancer}
	synctest.Test(t, func(t *testing.T) {
		m.interrupted(t, balancer)
		admin := m.Files[1].Path
		if err := errors.Join(os.WriteFile(admin, []byte("kind: Pod\n"), 0o600), os.Chtimes(admin, time.Time{}, time.Now())); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Do(t.Context()); err == nil || !strings.Contains(err.Error(), "set the server in "+admin) {
			t.Error(err)
		}
	})
	for _, file := range m.Files {
		if _, err := os.Stat(file.Path + durable.FormerSuffix); err != nil {
			t.Error(err)
		}
	}
	if len(k.restarts) > 0 {
		t.Errorf("restarted with %q", k.restarts)
	}
}

// TestMoveDoesNotTrustALeaseFromBeforeAnInterruptedChange: the kubelet does not reach the server that its file has.
func TestMoveDoesNotTrustALeaseFromBeforeAnInterruptedChange(t *testing.T) {
	m, k := moving(t)
	k.reaches = []string{former}
	synctest.Test(t, func(t *testing.T) {
		m.interrupted(t, balancer)
		k.renewed, k.restarts = time.Now(), []string{balancer}
		time.Sleep(time.Second)
		m.Server = "https://nobody.example.com:6443"
		if _, err := m.Do(t.Context()); err == nil {
			t.Error("it moved")
		}
	})
	if server, err := m.Files[0].server(); err != nil || server != former || k.restarts[len(k.restarts)-1] != former {
		t.Errorf("%v: it has %s, restarted with %q", err, server, k.restarts)
	}
}

func TestMovePutsBackWhatAKilledOneLeft(t *testing.T) {
	for name, answer := range map[string][]string{"and nobody answers": {former}, "and the kubelet does not reach the new one": {former, balancer}} {
		t.Run(name, func(t *testing.T) {
			m, k := moving(t)
			k.answer, k.reaches = answer, []string{former}
			synctest.Test(t, func(t *testing.T) {
				m.interrupted(t, "https://dead.example.com")
				if _, err := m.Do(t.Context()); err == nil {
					t.Error("it moved")
				}
			})
			if n := len(k.restarts); n == 0 || k.restarts[n-1] != former {
				t.Errorf("the kubelet was restarted with %q, and may have another server than its file", k.restarts)
			}
			for _, file := range m.Files {
				if content, err := os.ReadFile(file.Path); err != nil || string(content) != ofKubelet {
					t.Errorf("%v: %s", err, content)
				}
			}
		})
	}
}

// TestMoveDoesNotTrustTheFormerKubelet: it can renew the Lease while it ends.
func TestMoveDoesNotTrustTheFormerKubelet(t *testing.T) {
	m, k := moving(t)
	restart := k.restart
	k.reaches = []string{former}
	m.Restart = func(ctx context.Context) error {
		k.renewed = time.Now()
		time.Sleep(3 * time.Second)
		return restart(ctx)
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := m.Do(t.Context()); err == nil {
			t.Error("it moved")
		}
	})
	m.has(t, former)
}

func TestMoveRestartsNothingThatItCannotRestore(t *testing.T) {
	m, k := moving(t)
	m.Files = m.Files[:1]
	k.reaches = nil
	restart := k.restart
	m.Restart = func(ctx context.Context) error {
		return errors.Join(restart(ctx), os.WriteFile(k.path, []byte("by hand"), 0o640))
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := m.Do(t.Context()); err == nil {
			t.Error("it is no error")
		}
	})
	if len(k.restarts) != 1 {
		t.Errorf("restarted with %q", k.restarts)
	}
}

// TestMoveRestartsAKubeletWhoseFileAloneWasChanged: the other file had the new server already.
func TestMoveRestartsAKubeletWhoseFileAloneWasChanged(t *testing.T) {
	m, k := moving(t)
	k.reaches = []string{former}
	if err := os.WriteFile(m.Files[1].Path, []byte(strings.Replace(ofKubelet, former, balancer, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := m.Do(t.Context()); err == nil {
			t.Error("it moved")
		}
	})
	if !slices.Equal(k.restarts, []string{balancer, former}) {
		t.Errorf("restarted with %q", k.restarts)
	}
}
