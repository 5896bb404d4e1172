package minio

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

// recordOf is a record with what its steps left.
func recordOf(t *testing.T, plan journal.MinioMigratePlan, left map[string]any, forced ...journal.Forced) journal.ActionRecord {
	t.Helper()
	record := journal.ActionRecord{ID: "migrate-minio-1", Plan: journal.Plan{Facts: raw(t, plan)}, Steps: map[string]journal.StepRecord{}, Forced: forced}
	for step, outputs := range left {
		record.Steps[step] = journal.StepRecord{Attempts: 1, Failures: 1, Outputs: raw(t, outputs)}
	}
	return record
}

// TestWhateverStepFoundWhatIsNotCarriedItIsNamedOnce: that is what somebody has to know before
// the switch.
func TestWhateverStepFoundWhatIsNotCarriedItIsNamedOnce(t *testing.T) {
	record := recordOf(t, journal.MinioMigratePlan{}, map[string]any{
		journal.StepPrepareMinio: journal.MinioPrepared{NotCarried: []string{"d", "of all"}},
		journal.StepCopyMinio:    journal.MinioCopied{NotCarried: []string{"c", "of all"}},
		journal.StepCatchUpMinio: journal.MinioCaughtUp{NotCarried: []string{"b", "of all"}},
	})
	got := carriedOver(t.Context(), record)
	if want := "not everything can be carried over: b; c; d; of all"; got.Kind != actions.VerdictPass || got.Reason != want {
		t.Errorf("%+v, want %q", got, want)
	}
	record.Steps[journal.StepCatchUpMinio] = journal.StepRecord{}
	if less := carriedOver(t.Context(), record); less.Key == got.Key || less.Reason == got.Reason {
		t.Errorf("what is another warning has the key of the first: %+v", less)
	}
	for step := range record.Steps {
		unreadable := record
		unreadable.Steps = map[string]journal.StepRecord{step: {Outputs: json.RawMessage(`{"not_carried":1,"uncarried":1}`)}}
		if got := carriedOver(t.Context(), unreadable); got.Kind != actions.VerdictHold {
			t.Errorf("what step %s left cannot be read: %+v", step, got)
		}
	}
}

func TestASourceThatWasTooFastIsLeftForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		record := recordOf(t, journal.MinioMigratePlan{}, map[string]any{
			journal.StepCatchUpMinio: journal.MinioCaughtUp{TooFast: "it changes 100 objects a second", TooFastSince: time.Now()},
		})
		time.Sleep(calmPause - time.Second)
		if got := sourceCalm(t.Context(), record); got.Kind != actions.VerdictHold || !strings.HasPrefix(got.Reason, "it changes 100 objects a second; EKCO tries again at ") {
			t.Errorf("%+v", got)
		}
		time.Sleep(time.Second)
		if got := sourceCalm(t.Context(), record); got.Kind != actions.VerdictPass {
			t.Errorf("later: %+v", got)
		}
	})
}

// TestAForceReleasesNothingButNames: what is released is removed, or deleted with the single MinIO.
func TestAForceReleasesNothingButNames(t *testing.T) {
	found := func(store string, more int, names ...string) journal.MinioFound {
		return journal.MinioFound{Count: len(names) + more, Names: names, Store: store}
	}
	shown := found("store-1", 0, "object a", "object b")
	past := journal.Forced{Preflight: MinioNothingForeign, Key: keyFor(shown)}
	for name, test := range map[string]struct {
		shown, found journal.MinioFound
		forced       []journal.Forced
		want         bool
	}{
		"nobody did":              {shown, shown, nil, false},
		"the same":                {shown, shown, []journal.Forced{past}, true},
		"less":                    {shown, found("store-1", 0, "object b"), []journal.Forced{past}, true},
		"another":                 {shown, found("store-1", 0, "object a", "object c"), []journal.Forced{past}, false},
		"more than is named":      {shown, found("store-1", 1, "object a", "object b"), []journal.Forced{past}, false},
		"of another store":        {shown, found("store-2", 0, "object a", "object b"), []journal.Forced{past}, false},
		"another list":            {found("store-1", 0, "object a", "object c"), shown, []journal.Forced{past}, false},
		"another question":        {shown, shown, []journal.Forced{{Preflight: MinioNothingLacks, Key: past.Key}}, false},
		"where nothing was shown": {journal.MinioFound{}, found("", 0, "object a"), []journal.Forced{{Preflight: MinioNothingForeign, Key: keyFor(journal.MinioFound{})}}, false},
	} {
		if got := isReleased(test.found, test.shown, journal.ActionRecord{Forced: test.forced}, MinioNothingForeign); got != test.want {
			t.Errorf("%s: released: %t", name, got)
		}
	}
}

// TestWhatLacksIsReleasedByTheNewestList: the hold showed a shorter list before.
func TestWhatLacksIsReleasedByTheNewestList(t *testing.T) {
	found := func(names ...string) journal.MinioFound {
		return journal.MinioFound{Count: len(names), Names: names, Store: "store-1"}
	}
	shown := found("object a", "object b")
	for name, test := range map[string]struct {
		forced journal.MinioFound
		want   bool
	}{"the newest list": {shown, true}, "an earlier one": {found("object a"), false}} {
		step := actions.StepContext{Planned: journal.PlannedStep{ID: journal.StepCompareMinio}}
		step.Action = recordOf(t, ours, map[string]any{journal.StepCompareMinio: journal.MinioCompared{MinioFound: shown}},
			journal.Forced{Preflight: MinioNothingLacks, Key: keyFor(test.forced)})
		left := journal.MinioCompared{MinioFound: found("object a")}
		if _, err := requireNothingMissing(step, &left); (err == nil) != test.want || left.Done != test.want {
			t.Errorf("%s: released %t, %v", name, left.Done, err)
		}
	}
}

// identified is a store with this deployment id.
type identified struct {
	plainStore
	id string
}

func (s identified) Server(context.Context) (s3.Server, error) {
	return s3.Server{Deployment: s.id}, nil
}

// TestAStoreIsKnownByItsID: every store is the right one if none is on record, but not a store without an id.
func TestAStoreIsKnownByItsID(t *testing.T) {
	for name, test := range map[string]struct {
		source, target, wantSource, wantTarget string
		is                                     bool
	}{
		"as on record":           {"a", "b", "a", "b", true},
		"nothing is on record":   {"a", "b", "", "", true},
		"another source":         {"c", "b", "a", "b", false},
		"another target":         {"a", "c", "a", "b", false},
		"a source without an id": {"", "b", "", "b", false},
		"a target without an id": {"a", "", "a", "", false},
	} {
		both := sides{source: identified{id: test.source}, target: &fencedStore{Store: identified{id: test.target}}}
		if err := both.requireIDs(t.Context(), test.wantSource, test.wantTarget); (err == nil) != test.is {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatWasFoundIsLookedForAgain after a while, or when somebody asks for it or goes past it.
func TestWhatWasFoundIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		found := journal.MinioFound{Count: 1, Store: "store-1", Names: []string{"bucket b"}, At: time.Now()}
		record := recordOf(t, journal.MinioMigratePlan{}, map[string]any{journal.StepPrepareMinio: journal.MinioPrepared{Foreign: found}})
		holds := func(record journal.ActionRecord) bool {
			return nothingForeign(t.Context(), record).Kind == actions.VerdictHold
		}
		time.Sleep(recheckInterval - time.Second)
		if !holds(record) {
			t.Error("right after it was found it is removed")
		}
		asked := record
		asked.Steps = map[string]journal.StepRecord{journal.StepPrepareMinio: {Outputs: record.Steps[journal.StepPrepareMinio].Outputs}}
		past := record
		past.Forced = []journal.Forced{{Preflight: MinioNothingForeign, Key: keyFor(found)}}
		if holds(asked) || holds(past) {
			t.Errorf("it holds who asks: %t, who goes past it: %t", holds(asked), holds(past))
		}
		time.Sleep(time.Second)
		if holds(record) {
			t.Error("it is not looked for again")
		}
	})
}

// TestTheClaimStaysWhereverTheLastWasNotRead: it may be on it.
func TestTheClaimStaysWhereverTheLastWasNotRead(t *testing.T) {
	for name, test := range map[string]struct {
		plan journal.MinioMigratePlan
		left map[string]any
		want bool
	}{
		"all was read":                                      {journal.MinioMigratePlan{}, nil, false},
		"by the switch of an earlier migration":             {journal.MinioMigratePlan{HandOver: true, MinioMigrate: journal.MinioMigrate{Unread: true}}, nil, true},
		"which this one has made good":                      {journal.MinioMigratePlan{MinioMigrate: journal.MinioMigrate{Unread: true}}, nil, false},
		"by this one's switch":                              {journal.MinioMigratePlan{}, map[string]any{journal.StepCutOverMinio: journal.MinioCutOver{Unread: true}}, true},
		"by a comparison that somebody has gone past":       {journal.MinioMigratePlan{}, map[string]any{journal.StepCompareMinio: journal.MinioCompared{Unread: true}}, true},
		"by a comparison that could be made, and all there": {journal.MinioMigratePlan{HandOver: true}, map[string]any{journal.StepCompareMinio: journal.MinioCompared{Done: true}}, false},
	} {
		if got, err := isUnread(recordOf(t, test.plan, test.left)); err != nil || got != test.want {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	for _, step := range []string{journal.StepCutOverMinio, journal.StepCompareMinio} {
		record := recordOf(t, journal.MinioMigratePlan{}, map[string]any{step: "no record"})
		if _, err := isUnread(record); err == nil {
			t.Errorf("what %s left cannot be read, and nobody says so", step)
		}
	}
}

// TestTheServiceIsKnownToLeadThereByTheNewestThatSaysSo: with an older one nobody would notice
// that it led elsewhere since.
func TestTheServiceIsKnownToLeadThereByTheNewestThatSaysSo(t *testing.T) {
	switched := journal.MinioMigratePlan{HandOver: true, MinioMigrate: journal.MinioMigrate{Switched: true, Version: "5", Fingerprint: "5"}}
	others := journal.MinioMigratePlan{HandOver: true, MinioMigrate: journal.MinioMigrate{Version: "5"}}
	compared := func(done bool) map[string]any {
		return map[string]any{journal.StepCompareMinio: journal.MinioCompared{Done: done, Version: "9", Fingerprint: "9"}}
	}
	for i, test := range []struct {
		plan journal.MinioMigratePlan
		left map[string]any
		want string
	}{
		{journal.MinioMigratePlan{}, map[string]any{journal.StepCutOverMinio: journal.MinioCutOver{Version: "7", Fingerprint: "7"}}, "7"},
		{switched, nil, "5"},
		{switched, compared(true), "9"},
		{others, nil, ""},
		{others, compared(false), ""},
		{others, compared(true), "9"},
	} {
		got, fingerprint, err := knownAt(recordOf(t, test.plan, test.left))
		if err != nil || got != test.want || fingerprint != got {
			t.Errorf("%d: %q, %q, %v; want %q", i, got, fingerprint, err, test.want)
		}
	}
}

// TestReplicasAreOnTheNodesOfTheirPods: those of which nobody knows share what there is.
func TestReplicasAreOnTheNodesOfTheirPods(t *testing.T) {
	machine := nodeOfServer([]journal.MinioPod{{Name: "ha-minio-0", Node: "a"}, {Name: "ha-minio-1", Node: "b"}, {Name: "ha-minio-2"}, {Name: "10", Node: "c"}})
	var got []string
	for _, host := range []string{"ha-minio-0.ha-minio.minio.svc.cluster.local", "ha-minio-1", "ha-minio-2.ha-minio", "ha-minio-7.ha-minio", "10.32.0.4", ""} {
		got = append(got, fmt.Sprintf("%q", machine(host)))
	}
	if want := []string{`"a"`, `"b"`, `""`, `""`, `""`, `""`}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAListThatIsTooLongKeepsItsHold also when it is forced: nobody has read all of it.
func TestAListThatIsTooLongKeepsItsHold(t *testing.T) {
	for count, want := range map[int]actions.VerdictKind{1: actions.VerdictPass, 2: actions.VerdictHold} {
		found := journal.MinioFound{Count: count, Names: []string{"one"}, At: time.Now()}
		record := recordOf(t, ours, map[string]any{journal.StepPrepareMinio: journal.MinioPrepared{Foreign: found}}, journal.Forced{Preflight: MinioNothingForeign, Key: keyFor(found)})
		if got := nothingForeign(t.Context(), record); got.Kind != want {
			t.Errorf("of %d things one is named: %+v", count, got)
		}
	}
}

// TestOutputsThatLaterStepsReadAreNeeded: without those of the switch, a claim that must be kept would be deleted.
func TestOutputsThatLaterStepsReadAreNeeded(t *testing.T) {
	needed := migrateDefinition(&migrator{}).Needed
	for _, does := range []string{
		journal.StepPrepareMinio, journal.StepCopyMinio, journal.StepCatchUpMinio, journal.StepCutOverMinio,
		journal.StepCompareMinio, journal.StepCompareAgainMinio, doesLookAndDelete,
	} {
		if !slices.Contains(needed, does) {
			t.Errorf("the mirror may leave out the outputs of %s", does)
		}
	}
}

// TestWhatIsDeletedIsComparedOrLookedAt: all is compared where EKCO does not know up to when all was copied.
func TestWhatIsDeletedIsComparedOrLookedAt(t *testing.T) {
	for name, test := range map[string]struct {
		known    journal.MinioMigrate
		compares bool
	}{
		"known":              {journal.MinioMigrate{Switched: true, From: "uid-single", Fingerprint: "5", Target: "target-1"}, false},
		"unread":             {journal.MinioMigrate{Switched: true, From: "uid-single", Unread: true}, false},
		"by an earlier EKCO": {journal.MinioMigrate{Switched: true, From: "uid-single"}, true},
		"of another one":     {journal.MinioMigrate{Switched: true, From: "uid-other", Fingerprint: "5", Target: "target-1"}, true},
		"by a person":        {journal.MinioMigrate{From: "uid-single", Fingerprint: "5", Target: "target-1"}, true},
	} {
		plan := ours
		plan.HandOver, plan.MinioMigrate = true, test.known
		var irreversible []string
		compares := false
		for _, step := range migrateSteps(plan) {
			compares = compares || step.ID == journal.StepCompareMinio
			if step.Irreversible {
				irreversible = append(irreversible, step.ID)
			}
			if step.ID == journal.StepDeleteMinioDeployment && !slices.Contains(migrateDefinition(&migrator{}).Needed, step.Does) {
				t.Errorf("what %s leaves may be left out of the mirror", step.Does)
			}
		}
		if compares != test.compares || !slices.Equal(irreversible, []string{journal.StepDeleteMinioDeployment, journal.StepDeleteSingleClaim}) {
			t.Errorf("%s: compares %t, and irreversible are %v", name, compares, irreversible)
		}
	}
}

// TestNobodyWaitsForWhatLooksAtEverything: a purge needs the storage, and a look may take half a day.
func TestNobodyWaitsForWhatLooksAtEverything(t *testing.T) {
	for _, handOver := range []bool{false, true} {
		for _, step := range migrateSteps(journal.MinioMigratePlan{HandOver: handOver, Claim: "uid-claim"}) {
			brief := step.ID == journal.StepCutOverMinio || step.ID == journal.StepDeleteSingleClaim
			if step.Domains == nil || len(step.Domains) > 0 != brief {
				t.Errorf("%s has domains %q", step.ID, step.Domains)
			}
		}
	}
}
