package minio

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// off has EKCO do nothing about MinIO from now on, by which an open action ends; and on again.
func (w *world) off(rec *journal.ActionRecord) {
	w.T.Helper()
	on := w.P
	w.P = w.P.With(Machine, Policy{Off: "enable_ha_minio is off"})
	w.Decide()
	if rec.Cancelling == nil || rec.Cancelling.Reason != "enable_ha_minio is off" {
		w.T.Fatalf("the action goes on: %+v", rec)
	}
	w.end(rec, journal.OutcomeAbandoned)
	w.Gone(Machine, minio, "enable_ha_minio is off")
	if got := w.state(); got != Absent {
		w.T.Errorf("it is %s", got)
	}
	w.wants(migrate, false)
	w.P = on
}

func TestWhoSwitchesItOffAndOnAgainGoesOn(t *testing.T) {
	for name, test := range map[string]struct {
		leads journal.MinioService
		cut   journal.MinioCutOver
		steps []string
		// want is with what it is asked for, when the last one ended at that time.
		want func(time.Time) journal.MinioMigrate
	}{
		"before the switch": {
			journal.MinioServiceSingle,
			journal.MinioCutOver{},
			[]string{journal.StepPrepareMinio},
			func(ended time.Time) journal.MinioMigrate {
				return journal.MinioMigrate{Ours: ended.Add(-2 * time.Minute), Source: "store-1", Target: "target-1"}
			},
		},
		"after it": {
			journal.MinioServiceHA,
			journal.MinioCutOver{Switches: true, Version: "7"},
			[]string{journal.StepPrepareMinio, journal.StepCutOverMinio},
			func(time.Time) journal.MinioMigrate {
				return journal.MinioMigrate{Switched: true, From: "uid-single", Version: "7", Source: "store-1", Target: "target-1"}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			facts := complete(1)
			w.observe(facts)
			rec := w.plays("store-1", test.cut, test.steps...)
			want := test.want(w.Now)
			facts.Service = test.leads
			for range 3 {
				w.observe(facts)
				w.off(rec)
				w.Pass(time.Minute)
				w.observe(facts)
				rec = w.wants(migrate, true)
				got, err := journal.InputOf[journal.MinioMigrate](rec.Request)
				if got.Ours.Equal(want.Ours) {
					got.Ours = want.Ours // also where that was read
				}
				if err != nil || got != want {
					t.Errorf("%v: it is asked for with %+v, want %+v", err, got, want)
				}
			}
		})
	}
}
