package minio

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

// leadsClientsTo has somebody lead clients to the highly available MinIO, where they write, and
// then elsewhere.
func (b *duo) leadsClientsTo(selector string) {
	b.Point(toHA)
	b.Target.Write(plain, "theirs", "text", s3.Attributes{}, time.Now())
	b.Target.Write(plain, "ours", "text of theirs", s3.Attributes{}, time.Now())
	b.Point(selector)
}

// staysTheirs expects that the migration ended, with what clients wrote where they wrote it, and
// that the next one asks somebody what shall become of it.
func (b *duo) staysTheirs(r *actionstest.Running) {
	b.T.Helper()
	r.End()
	if got := b.outcome(); !strings.HasPrefix(got, asBefore) || !strings.Contains(b.LastLine(), "ended abandoned") {
		b.T.Fatalf("%s, %s\n%s", b.LastLine(), got, strings.Join(b.Story(), "\n"))
	}
	b.anew()
	b.asks()
	r = b.start()
	b.held(journal.StepPrepareMinio, MinioNothingForeign, "object plain/theirs")
	if dump := b.Target.Dump(); !strings.Contains(dump, "theirs") || !strings.Contains(dump, "text of theirs") {
		b.T.Errorf("ha-minio has\n%s", dump)
	}
	r.Halt()
}

// TestWhatClientsWroteToTheHighlyAvailableOneWhileNobodyLookedIsNotRemoved: an EKCO was killed
// while the Service led nowhere, and a person had it lead to ha-minio, and then back by hand.
func TestWhatClientsWroteToTheHighlyAvailableOneWhileNobodyLookedIsNotRemoved(t *testing.T) {
	for name, test := range map[string]struct {
		to   string
		away time.Duration
	}{
		"to nowhere, soon":       {nowhere, 0},
		"to nowhere, late":       {nowhere, time.Hour},
		"to the single one":      {toSingle, 0},
		"to the single one late": {toSingle, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				b.Source.Write(plain, "ours", "text", s3.Attributes{}, time.Now())
				b.killed(nowhere, journal.MinioCutOver{Disabled: true, DisabledAt: time.Now()})
				b.leadsClientsTo(test.to)
				w.Pass(test.away)
				b.staysTheirs(b.start())
			})
		})
	}
}

// TestADetourUnderASwitchRemovesNothing: EKCO waits for another pod of the single MinIO, and does
// not look at the Service meanwhile.
func TestADetourUnderASwitchRemovesNothing(t *testing.T) {
	for _, to := range []string{nowhere, toSingle} {
		actionstest.InBubble(t, func(w *actionstest.World) {
			b := grown(w)
			b.Source.Write(plain, "ours", "text", s3.Attributes{}, time.Now())
			b.Hang(true)
			b.asks()
			r := b.start()
			b.comes("noted cut-over")
			b.Pass(2 * time.Second)
			b.leadsClientsTo(to)
			b.Hang(false)
			b.staysTheirs(r)
		})
	}
}

// TestASwitchThatDiedBeforeItsOutageGoesOn: the Service leads where it did, and nobody touched it.
func TestASwitchThatDiedBeforeItsOutageGoesOn(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.killed(toSingle, journal.MinioCutOver{})
		was := journal.MinioCutOver{Disabled: true, DisabledAt: time.Now(), Back: b.version()}
		b.AppendAbout(b.subject, "operator", journal.StepNoted{Step: journal.StepCutOverMinio, Attempt: 1, Outputs: raw(t, was)}, journal.TypeStepNoted)
		b.ends(b.start(), handedOver)
		if b.Count("failed cut-over") != 1 {
			t.Errorf("the story is\n%s", strings.Join(b.Story(), "\n"))
		}
	})
}

// TestASwitchThatDiedRightAfterItWasTakenBackGoesOn: of the version that the Service has since then
// nothing is on record, but that it was EKCO who led it there. A detour after that stays one.
func TestASwitchThatDiedRightAfterItWasTakenBackGoesOn(t *testing.T) {
	takenBack := func(w *actionstest.World) *duo {
		b := grown(w)
		b.Source.Write(plain, "ours", "text", s3.Attributes{}, time.Now())
		b.killed(nowhere, journal.MinioCutOver{Disabled: true, Resumed: true, DisabledAt: time.Now()})
		if err := b.Client(b.Objects).Point(w.T.Context(), journal.MinioServiceSingle); err != nil {
			t.Fatal(err)
		}
		return b
	}
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := takenBack(w)
		b.ends(b.start(), handedOver)
	})
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := takenBack(w)
		b.leadsClientsTo(toSingle)
		b.staysTheirs(b.start())
	})
}

// TestAHandOverEndsWhereTheServiceLeadsNowhere: it is repaired then, which must not wait.
func TestAHandOverEndsWhereTheServiceLeadsNowhere(t *testing.T) {
	for name, test := range map[string]struct {
		asks  func(b *duo)
		leads string
	}{
		"of EKCO's switch":          {(*duo).asks, "ha-minio"}, // what calls it off repairs it
		"of somebody else's switch": {func(b *duo) { b.copied(); b.Point(toHA); b.asks() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				test.asks(b)
				r := b.start()
				b.held(journal.StepAwaitServedMinio, MinioKeptLongEnough, "waits until it has lasted")
				b.Point(nowhere)
				r.End()
				if got := b.outcome(); !strings.HasPrefix(got, fmt.Sprintf("the Service leads to %q, Deployment true, claim true", test.leads)) || !strings.Contains(b.LastLine(), "ended abandoned Service minio selects no pods") {
					t.Errorf("%s, %s", b.LastLine(), got)
				}
			})
		})
	}
}

// TestAMigrationEndsWhereSomebodyElseHasTheServiceLeadNowhere: it is repaired then, which must not wait.
func TestAMigrationEndsWhereSomebodyElseHasTheServiceLeadNowhere(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b, r := cordoned(w)
		b.Point(nowhere)
		r.End()
		if !strings.Contains(b.LastLine(), "ended abandoned Service minio selects no pods, which this step") {
			t.Errorf("%s, %s", b.LastLine(), b.outcome())
		}
	})
}

// TestACallOffAfterTheSwitchDoesNotGoBack: clients have written to the highly available MinIO.
func TestACallOffAfterTheSwitchDoesNotGoBack(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		r := b.start()
		b.comes("done cut-over")
		b.Point(nowhere)
		b.Cancel(r)
		b.ends(r, stays)
	})
}

// TestAChangeOfTheServiceWhileEKCOWasAwayEndsTheMigrationWhoeverLedItThere: EKCO's own name is also that of
// another EKCO, which may have switched it and back.
func TestAChangeOfTheServiceWhileEKCOWasAwayEndsTheMigrationWhoeverLedItThere(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.Reroll(true)
		b.asks()
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioTries, "") // EKCO led it back
		r.Halt()
		b.Edit(minio.ServiceRef(miniosim.Namespace), func(o map[string]any) {
			o["metadata"].(map[string]any)["labels"] = map[string]any{"team": "storage"}
		})
		b.ends(b.start(), asBefore)
		if !strings.Contains(b.LastLine(), "ended abandoned Service minio was changed, and may") {
			t.Errorf("%s", b.LastLine())
		}
	})
}
