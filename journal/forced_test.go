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

// TestAListIsForcedByItsKeyAlone: a person has read one list, and another may hold the action by now.
func TestAListIsForcedByItsKeyAlone(t *testing.T) {
	plain, list := &ActionHeld{Preflight: "Room", Key: "small", Step: "a"}, &ActionHeld{Preflight: "Kept", Key: "1a", List: true, Step: "b"}
	for named, want := range map[string]Forced{"": {"Room", "small"}, "1a": {"Kept", "1a"}, "2b": {}} {
		r := folded(t, ActionRecord{Planned: true, Plan: Plan{Steps: []PlannedStep{{ID: "a"}, {ID: "b"}}}}, plain, list, &ActionRetried{Force: true, List: named})
		if got := len(r.Forced); got > 1 || got == 0 && want != (Forced{}) || got == 1 && r.Forced[0] != want {
			t.Errorf("list %q: %+v, want %+v", named, r.Forced, want)
		}
	}
}
