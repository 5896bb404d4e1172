package loadbalancer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/replicatedhq/ekco/internal/durable"
	"github.com/replicatedhq/ekco/internal/hosttask"
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

// expectRestart expects that the manifest differs from EKCO's in one annotation, and removes that.
func (h Host) expectRestart(t *testing.T) {
	t.Helper()
	var was, is map[string]any
	text, err := Manifest("haproxy:2")
	for content, into := range map[string]*map[string]any{text: &was, contentOf(t, h.ManifestPath()): &is} {
		err = errors.Join(err, yaml.Unmarshal([]byte(content), into))
	}
	if err != nil {
		t.Fatal(err)
	}
	annotations, _ := is["metadata"].(map[string]any)["annotations"].(map[string]any)
	restarted, _ := annotations[restartedAnnotation].(string)
	at, err := time.Parse(time.RFC3339, restarted)
	if delete(annotations, restartedAnnotation); err != nil || time.Since(at).Abs() > time.Hour || !reflect.DeepEqual(was, is) {
		t.Errorf("restarted at %q: %v; its manifest is %v", restarted, err, is)
	}
	if err := os.WriteFile(h.ManifestPath(), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
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

func TestFailedChangeRestoresTheFormerFiles(t *testing.T) {
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
		"the manifest is as was": {refused, "haproxy:2", 1, "haproxy:2", twoPrimaries[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			var h Host
			h = confirming(t, func(_ context.Context, on journal.LoadBalancerOnNode) error {
				asked++
				if copies := h.copies(t); len(copies) != 2 || filepath.Dir(copies[0]) != filepath.Dir(h.ConfigPath()) || filepath.Dir(copies[1]) != filepath.Dir(h.ConfigPath()) {
					t.Errorf("meanwhile the copies are %q; the kubelet runs what is in the directory of the manifests", copies)
				}
				if got := contentOf(t, h.ManifestPath()); on.Image != test.image || on.Manifest != (test.image == lts) || !strings.Contains(got, test.image) {
					t.Errorf("it is to confirm %s, and the manifest is %s", on.Image, got)
				}
				return test.confirm
			})
			mounted, err := os.Stat(h.ConfigPath())
			if err != nil {
				t.Fatal(err)
			}
			_, err = h.Write(t.Context(), twoPrimaries, test.image)
			if info, err := os.Stat(h.ConfigPath()); err != nil || !os.SameFile(mounted, info) {
				t.Errorf("%v: the container has another file mounted than %s", err, h.ConfigPath())
			}
			if failed := test.asked > 0 && test.confirm != nil; (err != nil) != failed || failed && (!errors.Is(err, refused) || !strings.Contains(err.Error(), "former configuration and manifest were restored")) {
				t.Error(err)
			}
			if copies := h.copies(t); len(copies) > 0 || asked != test.asked {
				t.Errorf("asked %d times; left is %q", asked, copies)
			}
			if err != nil && test.image == "haproxy:2" {
				h.expectRestart(t)
			}
			expectHost(t, h, test.servers, test.has)
		})
	}
}

// TestAFormerFileThatCannotBeRestoredKeepsItsCopy: another program has written it. The other file is restored.
func TestAFormerFileThatCannotBeRestoredKeepsItsCopy(t *testing.T) {
	for name, path := range map[string]func(Host) string{"configuration": Host.ConfigPath, "manifest": Host.ManifestPath} {
		t.Run(name, func(t *testing.T) {
			var h Host
			h = confirming(t, func(context.Context, journal.LoadBalancerOnNode) error {
				return errors.Join(os.WriteFile(path(h), []byte("# another"), 0o644), errors.New("connection refused"))
			})
			want := map[string]string{h.ConfigPath(): configOf(t, twoPrimaries[:1]), h.ManifestPath(): contentOf(t, h.ManifestPath())}
			want[path(h)] = "# another"
			if _, err := h.Write(t.Context(), twoPrimaries, lts); !errors.Is(err, errCopiesKept) {
				t.Error(err)
			}
			if copies := h.copies(t); len(copies) != 2 {
				t.Errorf("the copies are %q", copies)
			}
			for path, want := range want {
				if got := contentOf(t, path); got != want {
					t.Errorf("%s has %s", path, got)
				}
			}
		})
	}
}

func TestAManifestThatCannotBeCopiedLeavesNoCopy(t *testing.T) {
	h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { return nil })
	if err := os.Truncate(h.ManifestPath(), maxManifest+1); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(t.Context(), twoPrimaries, lts); !errors.Is(err, durable.ErrTooLarge) || len(h.copies(t)) > 0 {
		t.Errorf("%v; left is %q", err, h.copies(t))
	}
	if got := contentOf(t, h.ConfigPath()); got != configOf(t, twoPrimaries[:1]) {
		t.Errorf("the configuration is %s", got)
	}
}

// TestAnInterruptedChangeIsUndoneBeforeAnyCopyIsMade: a copy that cannot be made discards the others.
func TestAnInterruptedChangeIsUndoneBeforeAnyCopyIsMade(t *testing.T) {
	h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { panic("killed") })
	func() {
		defer func() { _ = recover() }()
		_, _ = h.Write(t.Context(), twoPrimaries, lts)
	}()
	copied, long := h.ConfigPath()+durable.FormerSuffix, time.Now().Add(-2*time.Hour)
	if err := errors.Join(os.Remove(copied), os.MkdirAll(filepath.Join(copied, "directory"), 0o755), os.Chtimes(copied, long, long)); err != nil {
		t.Fatal(err)
	}
	if err := h.Recover(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(t.Context(), twoPrimaries, lts); err == nil {
		t.Error("it has no copy of the configuration")
	}
	if got := contentOf(t, h.ManifestPath()); !strings.Contains(got, `"haproxy:2"`) {
		t.Errorf("the manifest is %s", got)
	}
}

// TestAFileThatCannotBeReadAfterItsChangeIsNotConfirmed: it could not be restored.
func TestAFileThatCannotBeReadAfterItsChangeIsNotConfirmed(t *testing.T) {
	h := Host{Confirm: func(context.Context, journal.LoadBalancerOnNode) error {
		t.Error("it is confirmed")
		return nil
	}}
	files := formerFiles{{Path: filepath.Join(t.TempDir(), "none")}}
	if err := files.verify(t.Context(), h, journal.LoadBalancerOnNode{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
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
			if err := h.Recover(); err != nil {
				t.Fatal(err)
			}
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

// TestATrialIsNotUndoneByAnotherTask: it is not interrupted as long as its task runs.
func TestATrialIsNotUndoneByAnotherTask(t *testing.T) {
	for name, prepare := range map[string]func(Host) error{
		"a host with all files":        func(Host) error { return nil },
		"a host without configuration": func(h Host) error { return os.Remove(h.ConfigPath()) },
		"a host without /etc/haproxy":  func(h Host) error { return os.RemoveAll(filepath.Dir(h.ConfigPath())) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var h Host
				h = confirming(t, func(ctx context.Context, _ journal.LoadBalancerOnNode) error {
					other := h
					other.Confirm = func(context.Context, journal.LoadBalancerOnNode) error { return nil }
					_, err := other.WriteConfig(ctx, twoPrimaries[:1])
					for what, err := range map[string]error{"recover": other.Recover(), "write": err} {
						if !errors.Is(err, durable.ErrLocked) {
							t.Errorf("%s: %v", what, err)
						}
					}
					return nil
				})
				if err := prepare(h); err != nil {
					t.Fatal(err)
				}
				on, err := h.Write(t.Context(), twoPrimaries, lts)
				if has := contentOf(t, h.ConfigPath()); err != nil || !on.Config || Backend(has) != on.Backend {
					t.Errorf("%v: it wrote %s, and the host has %s", err, on.Backend, Backend(has))
				}
				if has := contentOf(t, h.ManifestPath()); !strings.Contains(has, lts) {
					t.Errorf("it wrote image %s, and the host has %s", lts, has)
				}
				if err := h.Recover(); err != nil { // no task runs any more
					t.Error(err)
				}
			})
		})
	}
}

// TestAnInterruptedChangeThatWorksIsKept: the host lost its power, and the former primaries may be gone.
func TestAnInterruptedChangeThatWorksIsKept(t *testing.T) {
	for latest, works := range []bool{true, false} {
		h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { panic("killed") })
		func() {
			defer func() { _ = recover() }()
			_, _ = h.Write(t.Context(), twoPrimaries, lts)
		}()
		times := []time.Time{time.Now().Add(-time.Minute).Truncate(time.Second), time.Now().Add(-time.Second).Truncate(time.Second)}
		for i, path := range []string{h.ConfigPath(), h.ManifestPath()} { // either may be the later one
			if err := os.Chtimes(path, time.Time{}, times[(latest+i)%2]); err != nil {
				t.Fatal(err)
			}
		}
		h.Works = func(on journal.LoadBalancerOnNode, since time.Time) error {
			if on.Image != lts || on.Version != FileVersion || !since.Equal(times[1]) {
				t.Errorf("asked about %+v since %s", on, since)
			}
			if works {
				return nil
			}
			return errors.New("connection refused")
		}
		if err := h.Recover(); err != nil {
			t.Fatal(err)
		}
		manifest, config := contentOf(t, h.ManifestPath()), contentOf(t, h.ConfigPath())
		if strings.Contains(manifest, lts) != works || strings.Contains(config, twoPrimaries[1]) != works || works && len(h.copies(t)) > 0 {
			t.Errorf("works %t; left are %q:\n%s\n%s", works, h.copies(t), manifest, config)
		}
	}
}

// TestALaterChangeIsNotUndone: after the program was killed, another one wrote the present primaries.
func TestALaterChangeIsNotUndone(t *testing.T) {
	h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { panic("killed") })
	func() {
		defer func() { _ = recover() }()
		_, _ = h.Write(t.Context(), twoPrimaries, lts)
	}()
	h.Confirm = nil
	if _, err := h.WriteConfig(t.Context(), twoPrimaries[1:]); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(h.ConfigPath(), time.Time{}, time.Now().Add(10*time.Minute)); err != nil {
		t.Fatal(err)
	}
	h.Confirm = func(context.Context, journal.LoadBalancerOnNode) error { return errors.New("connection refused") }
	if err := h.Recover(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(t.Context(), twoPrimaries[1:], lts); err == nil {
		t.Error("it is not confirmed")
	}
	expectHost(t, h, twoPrimaries[1:], "haproxy:2")
}

func TestARestoredManifestHasItsFormerMode(t *testing.T) {
	h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { return errors.New("connection refused") })
	if err := os.Chmod(h.ManifestPath(), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Write(t.Context(), twoPrimaries, lts); err == nil {
		t.Error("it is confirmed")
	}
	if info, err := os.Stat(h.ManifestPath()); err != nil || info.Mode() != 0o640 {
		t.Errorf("%v: it has mode %s", err, info.Mode())
	}
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

// TestOnlyAPodOfTheNewManifestConfirmsIt: right after the change, the kubelet has not replaced the former pod yet, and
// that of an earlier try may have the same image.
func TestOnlyAPodOfTheNewManifestConfirmsIt(t *testing.T) {
	second := time.Now().Truncate(time.Second)
	for name, test := range map[string]struct {
		written, started time.Time
		image, version   string
		ended, confirms  bool
	}{
		"it was started since":            {second, second.Add(time.Second), lts, FileVersion, false, true},
		"it was started in that second":   {second.Add(time.Second / 2), second, lts, FileVersion, false, true},
		"it was started before":           {second, second.Add(-time.Minute), lts, FileVersion, false, false},
		"the kubelet has not replaced it": {second.Add(-replaced), second.Add(-time.Hour), lts, FileVersion, false, true},
		"it has another image":            {second, second.Add(time.Second), "haproxy:2", FileVersion, false, false},
		"it has another version":          {second, second.Add(time.Second), lts, TCPFileVersion, false, false},
		"it does not run":                 {second.Add(-replaced), second, lts, FileVersion, true, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "haproxy-w1"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: lts}}}}
		if !test.ended {
			running := &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(test.started)}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Running: running}}}
		}
		if err := CheckRunning(pod, journal.LoadBalancerOnNode{Image: test.image, Version: test.version}, test.written); (err == nil) != test.confirms {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAConfigurationAloneIsTriedAsWell, with the manifest as it is, and whatever image is given for a new one.
func TestAConfigurationAloneIsTriedAsWell(t *testing.T) {
	refused := errors.New("connection refused")
	for way, write := range map[string]func(Host, context.Context, []string) (journal.LoadBalancerOnNode, error){
		"config": Host.WriteConfig,
		"provide": func(h Host, ctx context.Context, p []string) (journal.LoadBalancerOnNode, error) {
			return h.Provide(ctx, p, lts)
		},
	} {
		for name, test := range map[string]struct {
			primaries []string // that are written
			confirm   error
			asked     int
			has       []string
		}{
			"it works":          {twoPrimaries, nil, 1, twoPrimaries},
			"it does not work":  {twoPrimaries, refused, 1, twoPrimaries[:1]},
			"it is as it was":   {twoPrimaries[:1], refused, 0, twoPrimaries[:1]},
			"it cannot be made": {[]string{"a b"}, nil, 0, twoPrimaries[:1]},
		} {
			t.Run(way+", "+name, func(t *testing.T) {
				asked := 0
				type mark struct{}
				var h Host
				h = confirming(t, func(ctx context.Context, on journal.LoadBalancerOnNode) error {
					if asked++; ctx.Value(mark{}) == nil || !on.Config || on.Manifest || on.Image != "haproxy:2" || len(h.copies(t)) != 2 {
						t.Errorf("it is to confirm %+v; the copies are %q", on, h.copies(t))
					}
					return test.confirm
				})
				on, err := write(h, context.WithValue(t.Context(), mark{}, true), test.primaries)
				worse, is := errors.AsType[*hosttask.WorseError](err)
				if is != (asked > 0 && test.confirm != nil) || is && (!errors.Is(worse, refused) || !strings.Contains(err.Error(), "haproxy:2")) {
					t.Error(err)
				}
				if failed := is || test.primaries[0] == "a b"; failed != (err != nil) || asked != test.asked || len(h.copies(t)) > 0 || !failed && on.Config != (asked > 0) {
					t.Errorf("%v: %+v; asked %d times; left is %q", err, on, asked, h.copies(t))
				}
				if is {
					h.expectRestart(t)
				}
				expectHost(t, h, test.has, "haproxy:2")
			})
		}
	}
}

// TestAConfigurationWithoutItsManifestIsTakenBack: HAProxy was not tried with it, and the node is as it was.
func TestAConfigurationWithoutItsManifestIsTakenBack(t *testing.T) {
	full := errors.New("no space left on device")
	for confirms, has := range map[bool][]string{true: twoPrimaries[:1], false: twoPrimaries} {
		h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { t.Error("it is confirmed"); return nil })
		if !confirms {
			h.Confirm = nil
		}
		on, err := h.try(t.Context(), func() (journal.LoadBalancerOnNode, error) {
			on, err := h.config(twoPrimaries)
			return on, errors.Join(err, full)
		})
		_, worse := errors.AsType[*hosttask.WorseError](err)
		if !errors.Is(err, full) || worse || !on.Config || strings.Contains(err.Error(), "were restored") != confirms || len(h.copies(t)) > 0 {
			t.Errorf("confirms %v: %+v, %v; left is %q", confirms, on, err, h.copies(t))
		}
		expectHost(t, h, has, "haproxy:2")
	}
}

// TestAManifestThatIsNotHAProxysTakesTheConfigurationBack: it is read after the configuration was written.
func TestAManifestThatIsNotHAProxysTakesTheConfigurationBack(t *testing.T) {
	h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { t.Error("it is confirmed"); return nil })
	if err := os.WriteFile(h.ManifestPath(), []byte("kind: Service\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func() (journal.LoadBalancerOnNode, error){
		"config":  func() (journal.LoadBalancerOnNode, error) { return h.WriteConfig(t.Context(), twoPrimaries) },
		"provide": func() (journal.LoadBalancerOnNode, error) { return h.Provide(t.Context(), twoPrimaries, lts) },
		"write":   func() (journal.LoadBalancerOnNode, error) { return h.Write(t.Context(), twoPrimaries, lts) },
	} {
		if _, err := write(); err == nil || !strings.Contains(err.Error(), "is not HAProxy's manifest") || len(h.copies(t)) > 0 {
			t.Errorf("%s: %v; left is %q", name, err, h.copies(t))
		}
		if got := contentOf(t, h.ConfigPath()); got != configOf(t, twoPrimaries[:1]) {
			t.Errorf("%s: the configuration is %s", name, got)
		}
	}
}

// TestAnUnrestoredFileLeavesTheNodeWorse: the reason says both.
func TestAnUnrestoredFileLeavesTheNodeWorse(t *testing.T) {
	var h Host
	h = confirming(t, func(context.Context, journal.LoadBalancerOnNode) error {
		return errors.Join(os.WriteFile(h.ConfigPath(), []byte("# another"), 0o644), errors.New("connection refused"))
	})
	_, err := h.WriteConfig(t.Context(), twoPrimaries)
	if _, worse := errors.AsType[*hosttask.WorseError](err); !worse || !errors.Is(err, errCopiesKept) || !strings.Contains(err.Error(), "connection refused") || len(h.copies(t)) != 2 {
		t.Errorf("%v; left is %q", err, h.copies(t))
	}
}

// TestAKilledTrialOfAConfigurationIsUndoneByTheNext, which has HAProxy restarted.
func TestAKilledTrialOfAConfigurationIsUndoneByTheNext(t *testing.T) {
	h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { panic("killed") })
	func() {
		defer func() { _ = recover() }()
		_, _ = h.WriteConfig(t.Context(), twoPrimaries)
	}()
	if err := h.Recover(); err != nil {
		t.Fatal(err)
	}
	h.expectRestart(t)
	if got := contentOf(t, h.ConfigPath()); got != configOf(t, twoPrimaries[:1]) {
		t.Errorf("the configuration is %s", got)
	}
	if err := h.Recover(); err != nil || contentOf(t, h.ManifestPath()) != manifestOf(t, "haproxy:2") {
		t.Errorf("%v: HAProxy is restarted again", err)
	}
	if err := (Host{Etc: t.TempDir()}).Recover(); err != nil {
		t.Error(err)
	}
}

// TestARestartThatCannotBeTriggeredKeepsTheCopies: HAProxy still runs with the new configuration.
func TestARestartThatCannotBeTriggeredKeepsTheCopies(t *testing.T) {
	for _, manifest := range []string{"", "- a list\n"} {
		h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { return errors.New("connection refused") })
		confirm := h.Confirm
		h.Confirm = func(ctx context.Context, on journal.LoadBalancerOnNode) error {
			return errors.Join(os.WriteFile(h.ManifestPath(), []byte(manifest), 0o600), confirm(ctx, on))
		}
		if _, err := h.WriteConfig(t.Context(), twoPrimaries); !errors.Is(err, errCopiesKept) || len(h.copies(t)) != 2 {
			t.Errorf("%v; the copies are %q", err, h.copies(t))
		}
		if got := contentOf(t, h.ConfigPath()); got != configOf(t, twoPrimaries[:1]) {
			t.Errorf("the configuration is %s", got)
		}
	}
	path := filepath.Join(t.TempDir(), "haproxy.yaml")
	if err := errors.Join(os.WriteFile(path, []byte("metadata: {annotations: null}\n"), 0o600), triggerRestart(path)); err != nil || !strings.Contains(contentOf(t, path), restartedAnnotation) {
		t.Errorf("%v: %s", err, contentOf(t, path))
	}
}

// TestACancelledChangeWritesNothing.
func TestACancelledChangeWritesNothing(t *testing.T) {
	h := confirming(t, func(context.Context, journal.LoadBalancerOnNode) error { return nil })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.WriteConfig(ctx, twoPrimaries); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	expectHost(t, h, twoPrimaries[:1], "haproxy:2")
}

func manifestOf(t *testing.T, image string) string {
	t.Helper()
	text, err := Manifest(image)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
