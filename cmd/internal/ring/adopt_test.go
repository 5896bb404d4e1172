package ring

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/cmd/internal/api"
	fsmnode "github.com/replicatedhq/ekco/fsm/node"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/memory"
)

// salvaged is the journal as it is after the loss of its newest events to damage.
func (w *world) salvaged() {
	w.t.Helper()
	events := w.events(journal.Query{})
	last := events[len(events)-1].Seq
	w.tell(journal.JournalSubject, journal.TypeJournalSalvaged, journal.JournalSalvaged{
		DamagedFile: "journal.db.damaged", Problem: "page 7", Recovered: last, LastSeq: last, LostAtLeast: 1,
	})
}

// older makes of the mirror what an EKCO of v0.29.0 wrote there: no position and no
// version, and what a request needs beside its other members.
func (w *world) older() {
	w.t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(w.mirror()), &members); err != nil {
		w.t.Fatal(err)
	}
	members["format"] = 1
	delete(members, "at")
	delete(members, "version")
	for _, action := range members["actions"].([]any) {
		request := action.(map[string]any)["request"].(map[string]any)
		input, _ := request["input"].(map[string]any)
		maps.Copy(request, input)
		delete(request, "input")
	}
	content, err := json.Marshal(members)
	if err != nil {
		w.t.Fatal(err)
	}
	w.cluster.SetMirror(content)
}

func TestAfterASalvageWhatWasOpenComesBackFromTheOwnMirror(t *testing.T) {
	for name, mirrorOf := range map[string]func(w *world){"of this EKCO": func(*world) {}, "of v0.29.0": (*world).older} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.lostPurge()
				w.salvaged()
				mirrorOf(w)
				mirrored := w.mirror()
				for range 2 {
					in := w.start(nil)
					pass(time.Hour)
					w.stop(in)
				}
				open := w.state().OpenActions()
				if len(open) != 1 || !open[0].PastNoReturn || w.mirror() != mirrored {
					t.Fatalf("open is %+v, want the purge that the mirror knows", open)
				}
				if n := len(w.events(journal.Query{Types: []journal.Type{journal.TypeActionAdopted}})); n != 1 {
					t.Errorf("it was adopted %d times", n)
				}
				in := w.started()
				w.accept(in)
				pass(10 * time.Minute)
				w.stop(in)
				in = w.started()
				if got := w.machine("worker-2").State; got != fsmnode.Purged || w.state().Journal.SafeMode() || w.mirror() == mirrored {
					t.Errorf("once accepted the node is %s, safe mode %v", got, w.state().Journal.SafeMode())
				}
				w.stop(in)
			})
		})
	}
}

func TestWhatAnotherEKCOHadOpenIsAdoptedBeforeAnythingElse(t *testing.T) {
	for name, mirrorOf := range map[string]func(w *world){"this EKCO": func(*world) {}, "v0.29.0": (*world).older} {
		t.Run("by "+name, func(t *testing.T) { adoptedFirst(t, mirrorOf) })
	}
}

func adoptedFirst(t *testing.T, mirrorOf func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.openPurge()
		mirrorOf(w)
		w.store = memory.New()
		in := w.start(nil)
		pass(time.Second)
		events := w.events(journal.Query{})
		if len(events) < 2 || events[1].Type != journal.TypeActionAdopted {
			t.Fatalf("the new journal has %d events, and the second is no adoption", len(events))
		}
		adopted, err := events[1].Decode()
		if err != nil {
			t.Fatal(err)
		}
		if input := journal.PurgeInputOf(adopted.(*journal.ActionAdopted).Record.Request); input.Node == nil || input.Node.Role == "" {
			t.Errorf("the request is adopted with %+v", input)
		}
		pass(10 * time.Minute)
		if got := w.machine("worker-2").State; got != fsmnode.Purged {
			t.Errorf("the node is %s", got)
		}
		w.stop(in)
	})
}

func TestWhatWasCancelledHereIsNotAdoptedFromAnEKCOThatHadItOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		in, action := w.heldPurge()
		pass(time.Second)
		open := w.state().OpenActions()
		w.command(in.Backend(nil).Do(t.Context(), api.CancelRequest{Action: action, Actor: "cli:root@test"}))
		pass(time.Minute)
		w.stop(in)
		w.visit(open...)
		in = w.start(nil)
		pass(time.Hour)
		if adopted := w.events(journal.Query{Types: []journal.Type{journal.TypeActionAdopted}}); len(adopted) != 0 {
			t.Errorf("adopted again: %s", adopted[0].Payload)
		}
		if w.cluster.Count("delete-node worker-2") != 0 {
			t.Error("the Node was deleted although the purge was cancelled")
		}
		w.stop(in)
	})
}

func TestAMirrorThatCannotBeReadKeepsEKCOFromNothing(t *testing.T) {
	for _, garbage := range []string{"", "not json", "{}", `{"format":0}`, `{"format":1,"actions":"none"}`, "[1]"} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.policy.PurgeDeadNodes = true
			w.cluster.SetMirror([]byte(garbage))
			in := w.started()
			if reasons := in.Unready(t.Context()); len(reasons) != 0 {
				t.Errorf("%q: EKCO is not ready: %q", garbage, reasons)
			}
			w.loseWorker()
			pass(2 * time.Hour)
			if got := w.machine("worker-2").State; got != fsmnode.Purged {
				t.Errorf("%q: the node is %s", garbage, got)
			}
			if !strings.Contains(w.mirror(), `"journal_id"`) {
				t.Errorf("%q: the mirror is %s", garbage, w.mirror())
			}
			w.stop(in)
		})
	}
}

func TestTheMirrorOfANewerEKCOIsLeftAloneAndTheVersionThatItNeedsIsNamed(t *testing.T) {
	for name, newer := range map[string]string{
		"of another journal":    `{"format":4,"version":"v0.31.0","journal_id":"other","actions":[]}`,
		"of this journal":       `{"format":4,"version":"v0.31.0","journal_id":"JOURNAL","actions":{"a":{}}}`,
		"of which nothing fits": `{"format":4,"version":"v0.31.0","journal_id":["x"],"written_at":7,"actions":{"a":{}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				stat, err := w.store.Stat(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				newer := strings.ReplaceAll(newer, "JOURNAL", stat.JournalID)
				w.cluster.SetMirror([]byte(newer))
				in := w.started()
				w.loseWorker()
				pass(time.Second)
				if _, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2")); err != nil {
					t.Fatal(err)
				}
				pass(24 * time.Hour)
				if w.mirror() != newer || w.cluster.Count("delete-node worker-2") != 0 {
					t.Errorf("the mirror is %s; the Node was deleted %d times", w.mirror(), w.cluster.Count("delete-node worker-2"))
				}
				status, err := in.Backend(nil).Status(t.Context())
				if err != nil || !strings.Contains(status.Mirror, "v0.31.0") {
					t.Errorf("the status says %q, %v", status.Mirror, err)
				}
				open := w.state().OpenActions()
				held := slices.ContainsFunc(open, func(r journal.ActionRecord) bool {
					hold := r.Holds["delete-node"]
					return hold.Preflight == actions.Mirrored && strings.Contains(hold.Reason, "v0.31.0")
				})
				if !held || !strings.Contains(w.log.String(), "v0.31.0") {
					t.Errorf("open is %+v; the log:\n%s", open, w.log.String())
				}
				w.cluster.SetMirror(nil) // a person gave it up
				pass(10 * time.Minute)
				if got := w.machine("worker-2").State; got != fsmnode.Purged {
					t.Errorf("without that mirror the node is %s", got)
				}
				w.stop(in)
			})
		})
	}
}

// says changes a member of what the mirror holds.
func (w *world) says(member, value string) {
	w.t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(w.mirror()), &members); err != nil {
		w.t.Fatal(err)
	}
	members[member] = json.RawMessage(`"` + value + `"`)
	content, err := json.Marshal(members)
	if err != nil {
		w.t.Fatal(err)
	}
	w.cluster.SetMirror(content)
}

func TestARingForOneCommandLeavesTheMirrorOfAnEKCOThatMayLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.openPurge()
		w.says("journal_id", "another")
		mirrored := w.mirror()
		w.onlyNode = "worker-2"
		in := w.started()
		if _, err := in.Backend(nil).Request(t.Context(), askPurge("worker-2")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		if w.mirror() != mirrored || w.cluster.Count("delete-node worker-2") != 0 {
			t.Errorf("beside another EKCO the node is deleted, or the mirror is %s", w.mirror())
		}
		w.stop(in)
	})
}

func TestAMirrorThatWasCopiedFromAnotherClusterKeepsNobodyFromStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.openPurge()
		w.says("journal_id", "another")
		w.says("cluster_uid", "elsewhere")
		in := w.started()
		select {
		case <-in.Identified():
		default:
			t.Error("it does not start")
		}
		w.stop(in)
	})
}
