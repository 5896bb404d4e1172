package minio

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// knows expects with what a migration is asked for next.
func (w *world) knows(want journal.MinioMigrate) {
	w.T.Helper()
	w.Pass(fsm.RetryAfter + time.Minute)
	rec := w.wants(migrate, true)
	got, err := journal.InputOf[journal.MinioMigrate](rec.Request)
	if err != nil || !got.Ours.Equal(want.Ours) || got.Source != want.Source || got.From != want.From || got.Version != want.Version || got.Fingerprint != want.Fingerprint || got.Target != want.Target || got.Switched != want.Switched || got.Unread != want.Unread {
		w.T.Errorf("%v: it is asked for with %+v, want %+v", err, got, want)
	}
	w.end(rec, journal.OutcomeCancelled)
}

// does plays a migration of store-1 up to a step, that included, and cancels it an hour later. It
// returns up to when what was copied counts as a copy.
func (w *world) does(cut journal.MinioCutOver, steps ...string) (copied time.Time) {
	w.T.Helper()
	return w.doesOf("store-1", cut, steps...)
}

// switches plays one that switches; then it is seen where the Service leads, in that order,
// and it is cancelled.
func (w *world) switches(cut journal.MinioCutOver, leads ...journal.MinioService) {
	w.T.Helper()
	rec := w.plays("store-1", cut, journal.StepPrepareMinio, journal.StepCutOverMinio)
	for _, service := range leads {
		facts := complete(1)
		facts.Service = service
		w.observe(facts)
	}
	w.end(rec, journal.OutcomeCancelled)
}

func (w *world) doesOf(store string, cut journal.MinioCutOver, steps ...string) (copied time.Time) {
	w.T.Helper()
	rec := w.plays(store, cut, steps...)
	copied = w.Now.Add(-2 * time.Minute) // MinIO's clock may be behind
	w.Pass(time.Hour)                    // in which EKCO may have been away
	w.end(rec, journal.OutcomeCancelled)
	return copied
}

// plays does that without an end.
func (w *world) plays(store string, cut any, steps ...string) *journal.ActionRecord {
	w.T.Helper()
	rec := w.wants(migrate, true)
	plan := journal.Plan{Facts: json.RawMessage(`{"deployment":"uid-single"}`)}
	for _, step := range steps {
		plan.Steps = append(plan.Steps, journal.PlannedStep{ID: step})
	}
	w.act(rec, &journal.ActionPlanned{Plan: plan})
	for _, step := range steps {
		left := cut
		if step == journal.StepPrepareMinio {
			left = journal.MinioPrepared{Source: store, Target: "target-1", Done: true}
		}
		outputs, err := json.Marshal(left)
		if err != nil {
			w.T.Fatal(err)
		}
		w.act(rec, &journal.StepStarted{Step: step, Attempt: 1})
		w.Pass(time.Minute)
		w.act(rec, &journal.StepDone{Step: step, Attempt: 1, Outputs: outputs})
	}
	return rec
}

// operator writes what the operator notes about its clock.
func (w *world) operator(payload journal.Payload) {
	w.T.Helper()
	w.Write(journal.Draft{Type: journal.TypeOf(payload), Subject: journal.JournalSubject, Actor: fsm.ActorOperator, Payload: payload})
}

// jumps has the clock set by so much.
func (w *world) jumps(by time.Duration) {
	w.T.Helper()
	w.Now = w.Now.Add(by)
	w.operator(journal.ClockJumped{By: journal.Duration(by)})
}

// TestWhatAWrongClockSaysIsNotComparedWithMinIOs: what clients wrote since would count as copies.
func TestWhatAWrongClockSaysIsNotComparedWithMinIOs(t *testing.T) {
	for name, test := range map[string]func(w *world) journal.MinioMigrate{
		"it was ahead, and is put right": func(w *world) journal.MinioMigrate {
			ours := w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			w.jumps(-3 * time.Hour)
			return journal.MinioMigrate{Ours: ours.Add(-3 * time.Hour), Source: "store-1", Target: "target-1"}
		},
		"it was right, and is put ahead": func(w *world) journal.MinioMigrate {
			ours := w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			w.jumps(3 * time.Hour)
			return journal.MinioMigrate{Ours: ours, Source: "store-1", Target: "target-1"}
		},
		"it is put ahead meanwhile": func(w *world) journal.MinioMigrate {
			rec := w.plays("store-1", journal.MinioCutOver{}, journal.StepPrepareMinio)
			w.jumps(3 * time.Hour)
			w.end(rec, journal.OutcomeCancelled)
			return journal.MinioMigrate{}
		},
		"it is known to be wrong": func(w *world) journal.MinioMigrate {
			skew := journal.Duration(-3 * time.Hour)
			w.operator(journal.OperatorStarted{Version: "v0.0.0", ClockSkew: &skew})
			w.Pass(time.Minute)
			w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			return journal.MinioMigrate{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.observe(complete(1))
			w.knows(test(w))
		})
	}
}

// fails plays a migration whose switch comes to nothing, and cancels it. It returns up to when
// what was copied counts as a copy.
func (w *world) fails(cut journal.MinioCutOver) (copied time.Time) {
	w.T.Helper()
	outputs, err := json.Marshal(cut)
	if err != nil {
		w.T.Fatal(err)
	}
	return w.failsWith(outputs)
}

// failsWith is fails with whatever the switch put on record.
func (w *world) failsWith(outputs json.RawMessage) (copied time.Time) {
	w.T.Helper()
	rec := w.wants(migrate, true)
	w.act(rec, &journal.ActionPlanned{Plan: journal.Plan{Steps: []journal.PlannedStep{{ID: journal.StepPrepareMinio}, {ID: journal.StepCutOverMinio}}}},
		&journal.StepStarted{Step: journal.StepPrepareMinio, Attempt: 1},
		&journal.StepDone{Step: journal.StepPrepareMinio, Attempt: 1, Outputs: json.RawMessage(`{"source":"store-1","done":true}`)})
	w.Pass(time.Hour)
	copied = w.Now.Add(-2 * time.Minute)
	w.act(rec, &journal.StepStarted{Step: journal.StepCutOverMinio, Attempt: 1},
		&journal.StepFailed{Step: journal.StepCutOverMinio, Attempt: 1, Error: "less", Outputs: outputs})
	w.end(rec, journal.OutcomeCancelled)
	return copied
}

func TestWhatEKCODidBeforeIsKnownToTheNextMigration(t *testing.T) {
	ha := func(f *journal.MinioFacts) { f.Service = journal.MinioServiceHA }
	see := func(w *world, change func(*journal.MinioFacts)) {
		facts := complete(1)
		if change != nil {
			change(&facts)
		}
		w.observe(facts)
	}
	for name, test := range map[string]func(w *world) journal.MinioMigrate{
		"nothing": func(*world) journal.MinioMigrate { return journal.MinioMigrate{} },
		"it copied, and was called off": func(w *world) journal.MinioMigrate {
			return journal.MinioMigrate{Ours: w.does(journal.MinioCutOver{}, journal.StepPrepareMinio), Source: "store-1", Target: "target-1"}
		},
		"it copied twice from the same": func(w *world) journal.MinioMigrate {
			w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			w.Pass(fsm.RetryAfter + time.Minute)
			return journal.MinioMigrate{Ours: w.does(journal.MinioCutOver{}, journal.StepPrepareMinio), Source: "store-1", Target: "target-1"}
		},
		"it copied, and the next one did not get that far": func(w *world) journal.MinioMigrate {
			ended := w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			w.Pass(fsm.RetryAfter + time.Minute)
			w.does(journal.MinioCutOver{})
			return journal.MinioMigrate{Ours: ended, Source: "store-1", Target: "target-1"}
		},
		"it copied for longer": func(w *world) journal.MinioMigrate {
			return journal.MinioMigrate{Ours: w.does(journal.MinioCutOver{}, journal.StepPrepareMinio, journal.StepCopyMinio), Source: "store-1", Target: "target-1"}
		},
		"it copied from another one since": func(w *world) journal.MinioMigrate {
			w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			w.Pass(fsm.RetryAfter + time.Minute)
			return journal.MinioMigrate{Ours: w.doesOf("store-2", journal.MinioCutOver{}, journal.StepPrepareMinio), Source: "store-2", Target: "target-1"}
		},
		"the copy may be the last that there is": func(w *world) journal.MinioMigrate {
			w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			w.Pass(fsm.RetryAfter + time.Minute)
			w.fails(journal.MinioCutOver{Lost: journal.MinioFound{Count: 1}})
			return journal.MinioMigrate{}
		},
		"as an earlier EKCO left it": func(w *world) journal.MinioMigrate {
			w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			w.Pass(fsm.RetryAfter + time.Minute)
			w.fails(journal.MinioCutOver{Shrunk: "less"})
			return journal.MinioMigrate{}
		},
		"clients may have written to the other one in a switch": func(w *world) journal.MinioMigrate {
			w.fails(journal.MinioCutOver{Touched: true})
			return journal.MinioMigrate{}
		},
		"what came of a switch is not on record": func(w *world) journal.MinioMigrate {
			w.fails(journal.MinioCutOver{Disabled: true})
			return journal.MinioMigrate{}
		},
		"a switch that failed copied, too": func(w *world) journal.MinioMigrate {
			return journal.MinioMigrate{Ours: w.fails(journal.MinioCutOver{}), Source: "store-1"}
		},
		"what a switch put on record cannot be read": func(w *world) journal.MinioMigrate {
			w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			w.Pass(fsm.RetryAfter + time.Minute)
			w.failsWith(json.RawMessage(`{"shrunk":1}`))
			return journal.MinioMigrate{}
		},
		"the other one served before it was called off": func(w *world) journal.MinioMigrate {
			rec := w.plays("store-1", journal.MinioCutOver{}, journal.StepPrepareMinio)
			see(w, ha)
			w.end(rec, journal.OutcomeCancelled)
			see(w, nil)
			return journal.MinioMigrate{}
		},
		"and then the other one served": func(w *world) journal.MinioMigrate {
			w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			see(w, ha)
			see(w, nil)
			return journal.MinioMigrate{}
		},
		"it switched": func(w *world) journal.MinioMigrate {
			w.switches(journal.MinioCutOver{Switches: true, Version: "7", Fingerprint: "9"}, journal.MinioServiceHA)
			return journal.MinioMigrate{Switched: true, From: "uid-single", Version: "7", Fingerprint: "9", Source: "store-1", Target: "target-1"}
		},
		"it switched, somebody had it lead back, and somebody switched again": func(w *world) journal.MinioMigrate {
			w.switches(journal.MinioCutOver{Switches: true, Unread: true, Version: "7"}, journal.MinioServiceHA, journal.MinioServiceSingle)
			see(w, ha)
			return journal.MinioMigrate{}
		},
		"it switched, and nobody has seen so": func(w *world) journal.MinioMigrate {
			w.switches(journal.MinioCutOver{Switches: true})
			see(w, ha)
			return journal.MinioMigrate{}
		},
		"it switched without the last": func(w *world) journal.MinioMigrate {
			w.switches(journal.MinioCutOver{Switches: true, Unread: true}, journal.MinioServiceHA)
			return journal.MinioMigrate{Switched: true, Unread: true, From: "uid-single", Source: "store-1", Target: "target-1"}
		},
		"it switched, and what with cannot be read": func(w *world) journal.MinioMigrate {
			rec := w.plays("store-1", "no record of a switch", journal.StepPrepareMinio, journal.StepCutOverMinio)
			see(w, ha)
			w.end(rec, journal.OutcomeCancelled)
			return journal.MinioMigrate{Switched: true, Unread: true, From: "uid-single", Source: "store-1", Target: "target-1"}
		},
		"it copied, then switched, and nobody has seen so before it was led back": func(w *world) journal.MinioMigrate {
			w.does(journal.MinioCutOver{}, journal.StepPrepareMinio)
			w.Pass(fsm.RetryAfter + time.Minute)
			w.switches(journal.MinioCutOver{Switches: true})
			see(w, nil)
			return journal.MinioMigrate{}
		},
		// The steps of a dry run are done, too.
		"a dry run, under which somebody else switched": func(w *world) journal.MinioMigrate {
			w.P.DryRun = true
			rec := w.plays("", journal.MinioCutOver{}, journal.StepPrepareMinio, journal.StepCutOverMinio)
			see(w, ha)
			w.end(rec, journal.OutcomeDryRun)
			w.P.DryRun = false
			return journal.MinioMigrate{}
		},
		"it switched, and somebody else did so again": func(w *world) journal.MinioMigrate {
			w.switches(journal.MinioCutOver{Switches: true, Version: "7"}, journal.MinioServiceHA)
			see(w, nil)
			see(w, ha)
			return journal.MinioMigrate{}
		},
		"somebody else switched": func(w *world) journal.MinioMigrate {
			see(w, ha)
			return journal.MinioMigrate{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.observe(complete(1))
			want := test(w)
			w.knows(want)
		})
		t.Run(name+", and retention", func(t *testing.T) {
			w := newWorld(t, 3)
			w.observe(complete(1))
			want := test(w)
			w.retain()
			w.knows(want)
		})
	}
}

// TestADisabledServiceIsRepairedTheSameAfterRetention, whatever has left the journal since.
func TestADisabledServiceIsRepairedTheSameAfterRetention(t *testing.T) {
	const single, ha, disabled = journal.MinioServiceSingle, journal.MinioServiceHA, journal.MinioServiceDisabled
	for name, test := range map[string]struct {
		before func(w *world)
		leads  []journal.MinioService
		want   journal.MinioService
	}{
		"nobody switched":           {func(*world) {}, nil, single},
		"EKCO switched":             {func(w *world) { w.switches(journal.MinioCutOver{Switches: true}, ha) }, nil, ha},
		"and it was led back":       {func(w *world) { w.switches(journal.MinioCutOver{Switches: true}, ha) }, []journal.MinioService{single}, single},
		"and there again by others": {func(w *world) { w.switches(journal.MinioCutOver{Switches: true}, ha) }, []journal.MinioService{single, ha}, single},
		"and another migration was called off": {func(w *world) {
			w.switches(journal.MinioCutOver{Switches: true}, ha)
			w.Pass(fsm.RetryAfter + time.Minute)
			w.does(journal.MinioCutOver{})
		}, nil, ha},
	} {
		for _, retained := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, retention %t", name, retained), func(t *testing.T) {
				w := newWorld(t, 3)
				w.observe(complete(1))
				test.before(w)
				for i, service := range append(test.leads, disabled) {
					facts := complete(int64(i + 2))
					facts.Service = service
					w.observe(facts)
				}
				if retained {
					w.retain()
				}
				rec := w.wants(journal.ActionRepairMinio, true)
				if asked, err := journal.InputOf[journal.MinioRepair](rec.Request); err != nil || asked.To != test.want {
					t.Errorf("%v: it should select %s, want %s", err, asked.To, test.want)
				}
			})
		}
	}
}
