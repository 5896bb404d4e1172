package offline_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/cmd/internal/api"
	"github.com/replicatedhq/ekco/cmd/internal/api/offline"
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/clock"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/bolt"
)

func verify(context.Context, string) (api.VerifyResult, error) {
	return api.VerifyResult{OK: true}, nil
}

// TestACommandWritesByTheClockOfTheOperatorOfTheSameBoot: what it writes must
// not look hours older, or younger, than what the operator wrote.
func TestACommandWritesByTheClockOfTheOperatorOfTheSameBoot(t *testing.T) {
	const ahead = 3 * time.Hour
	path := filepath.Join(t.TempDir(), "journal.db")
	operators := clock.New(clock.Machine())
	operators.Move(ahead)
	store, err := bolt.Open(t.Context(), path, bolt.Options{Now: operators.Now})
	if err != nil {
		t.Fatal(err)
	}
	boot, up := operators.Uptime()
	_, err = store.Append(t.Context(), journal.Draft{
		Type: journal.TypeOperatorStarted, Subject: journal.OperatorSubject, Actor: ring.Actor,
		Payload: journal.OperatorStarted{BootID: boot, Uptime: journal.Duration(up)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	backend := offline.New(path, nil, nil, verify)
	if err := backend.Do(t.Context(), api.PauseRequest{Reason: "r", For: time.Hour, Actor: "cli:me@here"}); err != nil {
		t.Fatal(err)
	}
	status, err := backend.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pause, now := status.Pauses[""], operators.Now()
	near := func(what string, got, want time.Time) {
		t.Helper()
		if got.Sub(want).Abs() > time.Minute {
			t.Errorf("%s: %s, want about %s", what, got, want)
		}
	}
	near("now", status.Now, now)
	near("paused at", pause.At, now)
	near("paused until", pause.Until, now.Add(time.Hour))
	if pause == (fsm.PauseState{}) {
		t.Error("nothing is paused")
	}
	if err := backend.Close(); err != nil {
		t.Error(err)
	}
}
