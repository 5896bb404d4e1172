package loadbalancer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/journal"
)

// confirming returns a host with HAProxy's files and this [Host.Confirm].
func confirming(t *testing.T, confirm func(context.Context, journal.LoadBalancerOnNode) error) Host {
	t.Helper()
	h := Host{Etc: t.TempDir()}
	if _, err := h.Write(t.Context(), twoPrimaries[:1], "haproxy:2"); err != nil {
		t.Fatal(err)
	}
	h.Confirm = confirm
	return h
}

// copies returns the paths of the copies of former files.
func (h Host) copies(t *testing.T) []string {
	t.Helper()
	copies, err := filepath.Glob(filepath.Join(h.Etc, "*", "*"+durable.FormerSuffix))
	deeper, again := filepath.Glob(filepath.Join(h.Etc, "*", "*", "*"+durable.FormerSuffix))
	if err := errors.Join(err, again); err != nil {
		t.Fatal(err)
	}
	return append(copies, deeper...)
}

func TestTheFormerFilesAreRestoredUnlessHAProxyWorksWithTheNewManifest(t *testing.T) {
	refused := errors.New("connection refused")
	for name, test := range map[string]struct {
		confirm error
		image   string
		asked   int
		has     string
		servers []string
	}{
		"it works":               {nil, lts, 1, lts, twoPrimaries},
		"it does not work":       {refused, lts, 1, "haproxy:2", twoPrimaries[:1]},
		"the manifest is as was": {refused, "haproxy:2", 0, "haproxy:2", twoPrimaries},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			var h Host
			h = confirming(t, func(_ context.Context, on journal.LoadBalancerOnNode) error {
				asked++
				if copies := h.copies(t); len(copies) != 2 || filepath.Dir(copies[0]) != filepath.Dir(h.ConfigPath()) || filepath.Dir(copies[1]) != filepath.Dir(h.ConfigPath()) {
					t.Errorf("meanwhile the copies are %q; the kubelet runs what is in the directory of the manifests", copies)
				}
				if got := contentOf(t, h.ManifestPath()); on.Image != lts || !strings.Contains(got, lts) {
					t.Errorf("it is to confirm %s, and the manifest is %s", on.Image, got)
				}
				return test.confirm
			})
			_, err := h.Write(t.Context(), twoPrimaries, test.image)
			if failed := test.asked > 0 && test.confirm != nil; (err != nil) != failed || failed && (!errors.Is(err, refused) || !strings.Contains(err.Error(), "former configuration and manifest were restored")) {
				t.Error(err)
			}
			if copies := h.copies(t); len(copies) > 0 || asked != test.asked {
				t.Errorf("asked %d times; left is %q", asked, copies)
			}
			expectHost(t, h, test.servers, test.has)
		})
	}
}

// TestAFormerFileThatCannotBeRestoredKeepsItsCopy: another program has written the manifest.
func TestAFormerFileThatCannotBeRestoredKeepsItsCopy(t *testing.T) {
	var h Host
	h = confirming(t, func(context.Context, journal.LoadBalancerOnNode) error {
		return errors.Join(os.WriteFile(h.ManifestPath(), []byte("# another"), 0o644), errors.New("connection refused"))
	})
	if _, err := h.Write(t.Context(), twoPrimaries, lts); err == nil || !strings.Contains(err.Error(), "another program has changed it since") {
		t.Error(err)
	}
	if got := contentOf(t, h.ManifestPath()); got != "# another" || len(h.copies(t)) != 2 {
		t.Errorf("the manifest is %s, and the copies are %q", got, h.copies(t))
	}
	if got := contentOf(t, h.ConfigPath()); got != configOf(t, twoPrimaries[:1]) {
		t.Errorf("the configuration is %s", got)
	}
}

// TestAKilledProgramIsUndoneByTheNext: old copies are not restored.
func TestAKilledProgramIsUndoneByTheNext(t *testing.T) {
	for name, test := range map[string]struct {
		ago time.Duration
		has string
	}{"soon": {0, "haproxy:2"}, "long after": {2 * time.Hour, lts}, "by a clock that was ahead": {-2 * time.Hour, lts}} {
		t.Run(name, func(t *testing.T) {
			h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { panic("killed") })
			func() {
				defer func() { _ = recover() }()
				_, _ = h.Write(t.Context(), twoPrimaries, lts)
			}()
			if copies := h.copies(t); len(copies) != 2 {
				t.Fatalf("left is %q", copies)
			}
			for _, path := range h.copies(t) {
				if err := os.Chtimes(path, time.Time{}, time.Now().Add(-test.ago)); err != nil {
					t.Fatal(err)
				}
			}
			h.Confirm = func(context.Context, journal.LoadBalancerOnNode) error { return errors.New("connection refused") }
			_, err := h.Write(t.Context(), twoPrimaries, "haproxy:3")
			if err == nil || len(h.copies(t)) > 0 {
				t.Errorf("%v; left is %q", err, h.copies(t))
			}
			if got := contentOf(t, h.ManifestPath()); !strings.Contains(got, `"`+test.has+`"`) {
				t.Errorf("the manifest is %s", got)
			}
		})
	}
}

// TestALaterChangeIsNotUndone: after the program was killed, another one wrote the present primaries.
func TestALaterChangeIsNotUndone(t *testing.T) {
	h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { panic("killed") })
	func() {
		defer func() { _ = recover() }()
		_, _ = h.Write(t.Context(), twoPrimaries, lts)
	}()
	if _, err := h.WriteConfig(twoPrimaries[1:]); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(h.ConfigPath(), time.Time{}, time.Now().Add(10*time.Minute)); err != nil {
		t.Fatal(err)
	}
	h.Confirm = func(context.Context, journal.LoadBalancerOnNode) error { return errors.New("connection refused") }
	if _, err := h.Write(t.Context(), twoPrimaries[1:], lts); err == nil {
		t.Error("it is not confirmed")
	}
	expectHost(t, h, twoPrimaries[1:], "haproxy:2")
}

func TestAFormerManifestIsRestoredAlsoWithoutAFormerConfiguration(t *testing.T) {
	h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { return errors.New("connection refused") })
	if err := os.Remove(h.ConfigPath()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(t.Context(), twoPrimaries, lts); err == nil || len(h.copies(t)) > 0 {
		t.Errorf("%v; left is %q", err, h.copies(t))
	}
	expectHost(t, h, twoPrimaries, "haproxy:2")
}

func TestAHostWithoutAFormerManifestHasNothingToRestore(t *testing.T) {
	h := Host{Etc: t.TempDir(), Confirm: func(context.Context, journal.LoadBalancerOnNode) error { return errors.New("not asked") }}
	if _, err := h.Write(t.Context(), twoPrimaries, lts); err != nil || len(h.copies(t)) > 0 {
		t.Errorf("%v; left is %q", err, h.copies(t))
	}
	expectHost(t, h, twoPrimaries, lts)
}

// TestAPodOfAnEarlierTryConfirmsNothing: it has the same image, and the kubelet has not replaced it yet.
func TestAPodOfAnEarlierTryConfirmsNothing(t *testing.T) {
	for name, test := range map[string]struct {
		written, started time.Duration
		want             string
	}{
		"it was started before":      {0, -time.Minute, "pod haproxy-w1 was started before its manifest was written"},
		"it was started since":       {-2 * time.Second, -time.Second, ""},
		"the kubelet lets it be now": {-replaced, -time.Hour, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "haproxy-w1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: lts}}}}
		running := &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(test.started))}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Running: running}}}
		err := Runs(pod, journal.LoadBalancerOnNode{Image: lts, Version: FileVersion}, time.Now().Add(test.written))
		if (err != nil) != (test.want != "") || err != nil && err.Error() != test.want {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
