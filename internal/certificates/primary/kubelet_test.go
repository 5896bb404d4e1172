package primary_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/replicatedhq/ekco/internal/certificates/primary"
	"github.com/replicatedhq/ekco/internal/certificates/primary/primarytest"
)

// TestPodsAreSeenByTheirLogs has the directories that kubelets make.
func TestPodsAreSeenByTheirLogs(t *testing.T) {
	logs := t.TempDir()
	older, newer := strings.Repeat("a1", 16), strings.Repeat("b2", 16)
	for path, age := range map[string]time.Duration{
		"kube-system_kube-scheduler-p1_" + older + "/kube-scheduler/0.log":                         time.Hour,
		"kube-system_kube-scheduler-p1_" + newer + "/kube-scheduler/0.log":                         2 * time.Minute,
		"kube-system_kube-scheduler-p1_" + newer + "/kube-scheduler/10.log":                        time.Minute,
		"kube-system_kube-scheduler-p1_" + newer + "/kube-scheduler/9.log.20261124-184132":         0,
		"kube-system_kube-scheduler-p1_" + strings.Repeat("c3", 16) + "/other/0.log":               0,
		"kube-system_kube-apiserver-p1_" + strings.Repeat("d4", 16) + "/kube-apiserver/0.log":      0,
		"kube-system_kube-scheduler-x_0f3b0c5e-8d43-4c5b-9d0e-0d1c2b3a4f5e/kube-scheduler/0.log":   0,
		"default_kube-scheduler-p1_" + strings.Repeat("e5", 16) + "/kube-scheduler/0.log":          0,
		"kube-system_kube-scheduler-p1_" + strings.Repeat("f6", 16) + "/kube-scheduler/not-yet.gz": 0,
	} {
		at := filepath.Join(logs, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		text := "2026-11-24T18:00:00.000000000Z stderr F first\n2026-11-24T18:00:01.000000000Z stderr F I cannot\t go on\n"
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(at, then, then); err != nil {
			t.Fatal(err)
		}
	}
	host, of := primary.OnHost{Logs: logs}, primary.Static{Namespace: "kube-system", Name: "kube-scheduler", Container: "kube-scheduler"}
	pods, err := host.Pods(of)
	if diff := cmp.Diff([]primary.Pod{{UID: newer, Started: 10}, {UID: older}}, pods); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	if words := host.LastWords(of, newer); words != "I cannot go on" {
		t.Errorf("its last words are %q", words)
	}
	for _, uid := range []string{"", "*", strings.Repeat("0", 32)} {
		if words := host.LastWords(of, uid); words != "" {
			t.Errorf("%q has the last words %q", uid, words)
		}
	}
	if _, err := (primary.OnHost{Logs: filepath.Join(logs, "none")}).Pods(of); err == nil || !strings.Contains(err.Error(), "the pods that the kubelet has started") {
		t.Error(err)
	}
}

func TestAComponentIsAskedAsTheKubeletAsks(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		if _, err := w.Write([]byte("[-]etcd\nfailed at " + r.URL.Path)); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	of := primary.Static{Name: "kube-apiserver", Probe: server.URL + "/readyz"}
	if err := (primary.OnHost{}).Answers(t.Context(), of); err != nil {
		t.Error(err)
	}
	status = http.StatusInternalServerError
	if err := (primary.OnHost{}).Answers(t.Context(), of); err == nil || !strings.Contains(err.Error(), "500 Internal Server Error at "+of.Probe+": [-]etcd failed at /readyz") {
		t.Error(err)
	}
	if at, err := primary.ServerTime(t.Context(), server.URL+"/"); err != nil || time.Since(at).Abs() > time.Minute {
		t.Errorf("%s, %v", at, err)
	}
	server.Close()
	if err := (primary.OnHost{}).Answers(t.Context(), of); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	if _, err := primary.ServerTime(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), "for its time") {
		t.Error(err)
	}
	of.Probe = ""
	if err := (primary.OnHost{}).Answers(t.Context(), of); err == nil || !strings.Contains(err.Error(), "add a livenessProbe") {
		t.Error(err)
	}
}

// restless is a kubelet whose scheduler begins anew at each look, and answers each time.
type restless struct {
	*primarytest.Kubelet
	started int
}

func (r *restless) Pods(of primary.Static) ([]primary.Pod, error) {
	pods, err := r.Kubelet.Pods(of)
	if of.Name == "kube-scheduler" && len(pods) > 0 {
		r.started++
		pods[0].Started = r.started
	}
	return pods, err
}

func TestAComponentThatBeginsAnewAgainAndAgainHasNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		w.Rotation.Kubelet = &restless{Kubelet: w.Kubelet}
		result, err := w.run()
		if !errors.Is(err, primary.ErrFailed) || slices.Contains(result.Restarted, "kube-scheduler") || len(result.Restarted) != 2 {
			t.Errorf("%v: %+v", err, result)
		}
		w.clean()
	})
}

// TestTheClockIsComparedWithoutAPassword: what a rotation says goes on record.
func TestTheClockIsComparedWithoutAPassword(t *testing.T) {
	if _, err := primary.ServerTime(t.Context(), "https://admin:s3cret@10.0.0.1:64a43"); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5*day)
		w.Server = "https://admin:s3cret@10.0.0.1:6443"
		w.Make(time.Now().Add(5 * day))
		w.ServerTime = func(_ context.Context, server string) (time.Time, error) {
			if server != w.Server {
				t.Errorf("asked is %q", server)
			}
			return time.Now().Add(day), nil
		}
		if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "apart") || strings.Contains(err.Error(), "s3cret") || w.said("s3cret") {
			t.Errorf("%v, it says %q", err, w.lines)
		}
	})
}
