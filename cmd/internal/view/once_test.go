package view_test

import (
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/cmd/internal/view"
)

func TestALongCauseIsSaidOnce(t *testing.T) {
	cause := "find a pod to run ceph in: " + strings.Repeat("none of the pods runs; ", 10) + "look at them"
	var once view.Once
	for _, step := range []struct{ text, want string }{
		{"warning: CephHealthy: cannot tell whether Ceph is well: " + cause, "warning: CephHealthy: cannot tell whether Ceph is well: " + cause},
		{"warning: OSDSafeToDestroy: cannot tell whether OSDs are safe: " + cause, "warning: OSDSafeToDestroy: cannot tell whether OSDs are safe: (see above)"},
		{"held before out-osds by CephAnswers: " + cause + "; it continues automatically", "held before out-osds by CephAnswers: (see above); it continues automatically"},
		{"warning: CephHealthy: another " + cause + "!", "warning: CephHealthy: another (see above)!"},
		{"warning: now that: " + cause + " (CephHealthy)", "warning: now that: (see above) (CephHealthy)"},
		{"step delete-node: done", "step delete-node: done"},
		{"step delete-node: done", "step delete-node: done"},
	} {
		if got := once.Shorten(step.text); got != step.want {
			t.Errorf("%q is said as %q, want %q", step.text, got, step.want)
		}
	}
	var follows view.Once
	warning := "warning, no confirmation possible (no terminal): " + cause
	follows.Shorten("      0s  " + warning)
	if got, want := follows.Shorten("    2.4s  "+warning), "    2.4s  warning, no confirmation possible (no terminal): (see above)"; got != want {
		t.Errorf("what is said again, later, is said as %q, want %q", got, want)
	}
	var named view.Once
	named.Shorten("warning: one: " + cause + " (CephHealthy)")
	if got := named.Shorten("warning: two: " + cause + " (OSDSafeToDestroy)"); got != "warning: two: (see above) (OSDSafeToDestroy)" {
		t.Errorf("the cause of another check is said as %q", got)
	}
	var other view.Once
	if got := other.Shorten("again: " + cause); got != "again: "+cause {
		t.Errorf("who has heard nothing is told %q", got)
	}
}
