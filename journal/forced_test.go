package journal

import "testing"

func TestARetryGoesOnlyPastWhatHeldTheActionThen(t *testing.T) {
	r := folded(t, ActionRecord{Planned: true, Plan: Plan{Steps: []PlannedStep{{ID: "a"}, {ID: "b"}}}},
		&ActionHeld{Preflight: "Room", Key: "small", Step: "a"}, &ActionRetried{},
		&ActionHeld{Preflight: "Door", Key: "open", Step: "b"}, &ActionRetried{Force: true}, &ActionRetried{Force: true},
		&ActionHeld{Preflight: "Door", Key: "locked", Step: "b"})
	for _, test := range []struct {
		preflight, key string
		want           bool
	}{{"Door", "open", true}, {"Door", "locked", false}, {"Room", "small", false}, {"Door", "", false}} {
		if got := r.HasForced(test.preflight, test.key); got != test.want {
			t.Errorf("%s %s: %t", test.preflight, test.key, got)
		}
	}
	if len(r.Forced) != 1 {
		t.Errorf("forced are %+v", r.Forced)
	}
}
