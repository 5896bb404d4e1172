package api

import (
	"encoding/json"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// The JSON of a status has every key: empty lists and maps are [] and {}, and an unknown time is null. A field that is
// declared next to an embedded struct replaces the embedded field with the same key.

// MarshalJSON implements [json.Marshaler].
func (s Status) MarshalJSON() ([]byte, error) {
	type plain Status
	return json.Marshal(struct {
		plain
		AsOf        *time.Time                         `json:"as_of"`
		Problems    []Problem                          `json:"problems"`
		API         apiStatus                          `json:"api"`
		Nodes       []NodeStatus                       `json:"nodes"`
		Things      []ThingStatus                      `json:"things"`
		Actions     []journal.ActionRecord             `json:"actions"`
		Unrecorded  map[string]string                  `json:"unrecorded"`
		Progress    map[string]map[string]stepProgress `json:"progress"`
		Refusals    []fsm.Refusal                      `json:"refusals"`
		Next        []fsm.Upcoming                     `json:"next"`
		Pauses      map[string]fsm.PauseState          `json:"pauses"`
		Defects     []string                           `json:"defects"`
		Absent      []string                           `json:"absent"`
		NotMirrored []string                           `json:"not_mirrored"`
	}{
		plain: plain(s), AsOf: timeOrNil(s.AsOf), Problems: orEmptyList(s.Problems),
		API:   apiStatus{LostAt: timeOrNil(s.API.LostAt), Error: s.API.Error, SettlingFrom: timeOrNil(s.API.SettlingFrom)},
		Nodes: orEmptyList(s.Nodes), Things: orEmptyList(s.Things), Actions: orEmptyList(s.Actions), Unrecorded: orEmptyMap(s.Unrecorded),
		Progress: progressOf(s.Progress), Refusals: orEmptyList(s.Refusals), Next: orEmptyList(s.Next), Pauses: orEmptyMap(s.Pauses),
		Defects: orEmptyList(s.Defects), Absent: orEmptyList(s.Absent), NotMirrored: orEmptyList(s.NotMirrored),
	})
}

// MarshalJSON implements [json.Marshaler].
func (e ThingExplanation) MarshalJSON() ([]byte, error) {
	type plain ThingExplanation
	return json.Marshal(struct {
		plain
		Actions  []journal.ActionRecord            `json:"actions"`
		Refusals []fsm.Refusal                     `json:"refusals"`
		Contests []ContestStatus                   `json:"contests"`
		Last     map[journal.ActionKind]fsm.Ending `json:"last"`
		Next     []fsm.Upcoming                    `json:"next"`
	}{plain(e), orEmptyList(e.Actions), orEmptyList(e.Refusals), orEmptyList(e.Contests), orEmptyMap(e.Last), orEmptyList(e.Next)})
}

// stepProgress is [actions.Progress] with all its keys.
type stepProgress struct {
	actions.Progress
	Missing string           `json:"missing"`
	Since   *time.Time       `json:"since"`
	Total   int64            `json:"total"`
	Unit    string           `json:"unit"`
	Bytes   int64            `json:"bytes"`
	Left    journal.Duration `json:"left"`
}

func progressOf(all map[string]map[string]actions.Progress) map[string]map[string]stepProgress {
	with := make(map[string]map[string]stepProgress, len(all))
	for action, steps := range all {
		with[action] = make(map[string]stepProgress, len(steps))
		for step, p := range steps {
			with[action][step] = stepProgress{p, p.Missing, timeOrNil(p.Since), p.Total, p.Unit, p.Bytes, p.Left}
		}
	}
	return with
}

// apiStatus is [fsm.APIState] with all its keys.
type apiStatus struct {
	LostAt       *time.Time `json:"lost_at"`
	Error        string     `json:"error"`
	SettlingFrom *time.Time `json:"settling_from"`
}

// MarshalJSON implements [json.Marshaler].
func (c ClockStatus) MarshalJSON() ([]byte, error) {
	type plain ClockStatus
	return json.Marshal(struct {
		plain
		JumpedAt *time.Time `json:"jumped_at"`
	}{plain(c), timeOrNil(c.JumpedAt)})
}

// MarshalJSON implements [json.Marshaler].
func (j JournalStatus) MarshalJSON() ([]byte, error) {
	type plain JournalStatus
	return json.Marshal(struct {
		plain
		SafeModeSince   *time.Time `json:"safe_mode_since"`
		LostFrom        *time.Time `json:"lost_from"`
		ReplacedAt      *time.Time `json:"replaced_at"`
		AdoptedAt       *time.Time `json:"adopted_at"`
		UnwritableSince *time.Time `json:"unwritable_since"`
	}{plain(j), timeOrNil(j.SafeModeSince), timeOrNil(j.LostFrom), timeOrNil(j.ReplacedAt), timeOrNil(j.AdoptedAt), timeOrNil(j.UnwritableSince)})
}

// MarshalJSON implements [json.Marshaler].
func (n NodeStatus) MarshalJSON() ([]byte, error) {
	type plain NodeStatus
	return json.Marshal(struct {
		plain
		Taints           []journal.Taint `json:"taints"`
		UnreachableSince *time.Time      `json:"unreachable_since"`
	}{plain(n), orEmptyList(n.Taints), timeOrNil(n.UnreachableSince)})
}

// MarshalJSON implements [json.Marshaler].
func (t ThingStatus) MarshalJSON() ([]byte, error) {
	type plain ThingStatus
	return json.Marshal(struct {
		plain
		Details []string `json:"details"`
	}{plain(t), orEmptyList(t.Details)})
}

func timeOrNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func orEmptyList[T any](of []T) []T {
	if of == nil {
		return []T{}
	}
	return of
}

func orEmptyMap[K comparable, T any](of map[K]T) map[K]T {
	if of == nil {
		return map[K]T{}
	}
	return of
}
