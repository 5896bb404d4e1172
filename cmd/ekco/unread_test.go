package main

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// TestACommandEndsWhoseOutputNobodyTakes: its client is gone, and its pipe is full.
func TestACommandEndsWhoseOutputNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ended := time.Duration(0)
		reader, writer := io.Pipe()
		by := &unreadGuard{end: func() { ended = time.Since(began); _ = writer.Close() }}
		by.mayEnd.Store(true)
		_, err := (&guardedOutput{writer, unreadTimeout, by}).Write([]byte("a line\n"))
		if err == nil || ended != unreadTimeout {
			t.Errorf("it ended after %s, %v", ended, err)
		}
		_ = reader.Close()
	})
}

// TestACommandStaysWhoseOutputIsTakenOrThatWorksItself: a slow reader is a reader, and nobody
// else goes on with what an operator, or a command without one, does.
func TestACommandStaysWhoseOutputIsTakenOrThatWorksItself(t *testing.T) {
	for name, late := range map[string]time.Duration{"taken": unreadTimeout - time.Second, "works itself": 2 * unreadTimeout} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reader, writer := io.Pipe()
				by := &unreadGuard{end: func() { t.Error("it is ended") }}
				by.mayEnd.Store(name == "taken")
				output := &guardedOutput{writer, unreadTimeout, by}
				go func() {
					for range 3 {
						time.Sleep(late)
						_, _ = reader.Read(make([]byte, 10))
					}
				}()
				for range 3 {
					if _, err := output.Write([]byte("a line\n")); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(2 * unreadTimeout)
			})
		})
	}
}

// TestOnlyWhoWorksItselfStaysUnread: also a command that first followed another one.
func TestOnlyWhoWorksItselfStaysUnread(t *testing.T) {
	for _, args := range [][]string{{"status"}, {"purge-node", "worker-2"}} {
		d := newDesk(t, purging(t, journal.OutcomeDone))
		if d.types(args...); !d.app.unread.mayEnd.Load() {
			t.Errorf("%v waits for ever for somebody who takes its output", args)
		}
	}
	d := newDesk(t, nil)
	endedInFile(t, d, "")
	d.dials(beside(t))
	d.works(purging(t, journal.OutcomeDone), 0, nil)
	d.expect(d.types("purge-node", "worker-2"), exitDone, "does the work itself", "")
	if d.app.unread.mayEnd.Load() {
		t.Error("a purge is ended that this command carries out, since nobody takes its output")
	}
}
