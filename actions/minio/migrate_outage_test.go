package minio

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/actions/actionstest"
	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/journal"
)

// killed has an EKCO die in the switch, which had put that on record; the Service leads there.
func (b *duo) killed(selector string, state journal.MinioCutOver) {
	b.T.Helper()
	b.Cordon("a", true)
	b.asks()
	r := b.start()
	b.held(journal.StepCutOverMinio, MinioSuccessor, "node a is cordoned")
	r.Halt()
	b.Cordon("a", false)
	state.Back = b.version()
	b.Point(selector)
	switch {
	case selector == nowhere:
		state.Away = b.version()
	case !state.Disabled:
		state.Back = b.version()
	}
	b.AppendAbout(b.subject, "operator", journal.StepStarted{Step: journal.StepCutOverMinio, Attempt: 1}, journal.TypeStepStarted)
	b.AppendAbout(b.subject, "operator", journal.StepNoted{Step: journal.StepCutOverMinio, Attempt: 1, Outputs: raw(b.T, state)}, journal.TypeStepNoted)
}

// nowhere is the selector of a Service that EKCO disabled.
const nowhere = `{"doesnotexist":"doesnotexist"}`

func TestASwitchThatWasInterruptedGoesOnOnce(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.killed(nowhere, journal.MinioCutOver{Disabled: true, DisabledAt: time.Now()})
		r := b.start()
		b.comes(`"resumed":true`)
		b.comes("done cut-over #2")
		b.ends(r, handedOver)
	})
}

// TestAnOutageEndsAlthoughAnotherNamespaceIsConfigured: whoever looks for MinIO there finds nothing to
// take back.
func TestAnOutageEndsAlthoughAnotherNamespaceIsConfigured(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.killed(nowhere, journal.MinioCutOver{Disabled: true})
		migration := b.migration
		migration.Stores = miniosim.Network{Both: b.Both}
		r := b.Start(b.Config(InNamespaces("another", func(namespace string) []actions.Definition {
			return []actions.Definition{NewMigration(minio.NewClient(b.Objects, b.Both, namespace), migration, func() {})}
		})))
		b.Pass(time.Minute)
		if leads := b.ServiceLeads(); leads == "" {
			t.Error("after a minute the Service still selects no pods")
		}
		r.Halt()
	})
}

// TestAnOutageIsBoundedWhateverEndsEKCO: each start had a new limit, and no failure counted.
func TestAnOutageIsBoundedWhateverEndsEKCO(t *testing.T) {
	for name, state := range map[string]func() journal.MinioCutOver{
		"it went on before":    func() journal.MinioCutOver { return journal.MinioCutOver{Resumed: true, DisabledAt: time.Now()} },
		"it was long ago":      func() journal.MinioCutOver { return journal.MinioCutOver{DisabledAt: time.Now().Add(-time.Hour)} },
		"another clock":        func() journal.MinioCutOver { return journal.MinioCutOver{DisabledAt: time.Now().Add(time.Hour)} },
		"nobody wrote it down": func() journal.MinioCutOver { return journal.MinioCutOver{} },
	} {
		t.Run(name, func(t *testing.T) {
			actionstest.InBubble(t, func(w *actionstest.World) {
				b := grown(w)
				was := state()
				was.Disabled = true
				b.killed(nowhere, was)
				r := b.start()
				b.comes("failed cut-over #2")
				b.backs()
				if !strings.Contains(b.cut().Error, "the switch was interrupted while Service minio selected no pods") || b.cut().Tries != 1 || b.Record().Steps[journal.StepCutOverMinio].Failures != 1 {
					t.Errorf("it is no try in vain: %+v", b.cut())
				}
				b.ends(r, handedOver)
			})
		})
	}
}

func TestASwitchThatGoesOnHasTheRestOfItsTime(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.killed(nowhere, journal.MinioCutOver{Disabled: true, DisabledAt: time.Now().Add(-(limitFactor - 1) * DefaultCutOverLimit)})
		b.Hang(true)
		began := time.Now()
		r := b.start()
		b.comes("failed cut-over #2")
		b.backs()
		if took := time.Since(began); took > DefaultCutOverLimit+time.Second {
			t.Errorf("it took %s more", took)
		}
		b.Hang(false)
		b.ends(r, handedOver)
	})
}

// TestWhatAKilledSwitchDidNotPutOnRecordIsNotMirrored: it had another pod start, went back,
// and was killed before it could look at what that was without.
func TestWhatAKilledSwitchDidNotPutOnRecordIsNotMirrored(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.killed(`{"app":"minio"}`, journal.MinioCutOver{DisabledAt: time.Now(), Listed: true, Pods: []string{"one before"}})
		b.Source.LoseBucket(kept)
		r := b.start()
		b.held(journal.StepCutOverMinio, MinioSourceKept, "bucket "+kept)
		b.backs()
		if !strings.Contains(b.Target.Dump(), "document-0") {
			t.Errorf("the copy has no more than\n%s", b.Target.Dump())
		}
		b.force(r) // somebody knows that it is right
		b.ends(r, handedOver)
	})
}

// late is an API server that does not switch before it is too late.
type late struct{ minio.API }

func (late) Switch(ctx context.Context, _ string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// TestAStopPutsOnRecordThatTheSwitchWasTakenBack: else who switches by hand later is taken for
// EKCO.
func TestAStopPutsOnRecordThatTheSwitchWasTakenBack(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		m := &migrator{api: late{b.Client(b.Objects)}, changed: func() {}, Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.comes(`"settled":true`)
		r.Halt()
		b.backs()
		if cut := b.cut(); cut.Disabled || cut.Switches {
			t.Errorf("on record is %+v", cut)
		}
		b.ends(b.start(), handedOver)
	})
}

// recorded is an API server that does not switch, and is asked to lead the Service back only once that is on record.
type recorded struct {
	late
	b *duo
}

func (r recorded) Point(ctx context.Context, to journal.MinioService) error {
	if r.b.cut().Switches {
		r.b.T.Error("it leads back, and on record the switch comes next")
	}
	return r.API.Point(ctx, to)
}

func TestThatTheSwitchIsGivenUpIsRecordedFirst(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.asks()
		m := &migrator{api: recorded{late{b.Client(b.Objects)}, b}, changed: func() {}, Migration: b.migration}
		m.Stores = miniosim.Network{Both: b.Both}
		r := b.Start(b.Config([]actions.Definition{migrateDefinition(m)}))
		b.comes("failed cut-over")
		b.backs()
		r.Halt()
	})
}

// TestASwitchByHandIsNotTakenForEKCOs, which led the Service back and was killed before that was on record.
func TestASwitchByHandIsNotTakenForEKCOs(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.killed(`{"app":"minio"}`, journal.MinioCutOver{Disabled: true, DisabledAt: time.Now(), Switches: true, Settled: true})
		b.Source.Write(plain, "meanwhile", "text", s3.Attributes{}, time.Now())
		b.Pass(time.Hour)
		b.lead(minio.App)
		b.ends(b.start(), stays)
		b.anew()
		b.asks()
		r := b.start()
		b.held(journal.StepCompareMinio, MinioNothingLacks, "object plain/meanwhile")
		r.Halt()
	})
}

// cut is what is on record of the switch.
func (b *duo) cut() journal.MinioCutOver {
	b.T.Helper()
	cut, err := outputOf[journal.MinioCutOver](b.Record(), journal.StepCutOverMinio)
	if err != nil {
		b.T.Fatal(err)
	}
	return cut
}

// TestWhileClientsWaitNothingIsSlowedDown: what was written last has more bytes than the limit of
// the speed would carry within the whole of the switch.
func TestWhileClientsWaitNothingIsSlowedDown(t *testing.T) {
	actionstest.InBubble(t, func(w *actionstest.World) {
		b := grown(w)
		b.migration.CopyBandwidth = 20
		written, then := false, b.AfterEffect
		b.AfterEffect = func(effect string) {
			then(effect)
			if !written && b.ServiceLeads() == "" {
				written = true
				b.Source.Write(kept, "last", strings.Repeat("x", 20*int(limitFactor*DefaultCutOverLimit/time.Second)), s3.Attributes{}, time.Now())
			}
		}
		b.asks()
		b.ends(b.start(), handedOver)
		if !written || w.Count("failed cut-over") != 0 || !strings.Contains(b.Target.Dump(), "last") {
			t.Errorf("written: %v; %q", written, w.Story())
		}
	})
}
