package actions

import (
	"sync"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestNothingThatWasPutIntoAnInboxIsLostHoweverLateItIsRead(t *testing.T) {
	const events, writers = 200, 4
	inbox := NewInbox()
	var putting sync.WaitGroup
	for range writers {
		putting.Go(func() {
			for i := range events {
				inbox.Tell(journal.Event{Seq: uint64(i)}, &journal.ActionJoined{})
				inbox.Recheck()
			}
		})
	}
	putting.Wait()
	<-inbox.woken()
	unread, recheck := inbox.takeAll()
	if len(unread) != events*writers || !recheck {
		t.Errorf("%d events, recheck %v", len(unread), recheck)
	}
	if unread, recheck = inbox.takeAll(); len(unread) != 0 || recheck {
		t.Errorf("read twice: %d events, recheck %v", len(unread), recheck)
	}
}

func TestARunWithoutAnInboxIsToldNothing(t *testing.T) {
	var none *Inbox
	if unread, recheck := none.takeAll(); none.woken() != nil || len(unread) != 0 || recheck {
		t.Error("there is something in no inbox")
	}
}

func TestWhatIsPutIntoAnInboxIsReadInItsOrder(t *testing.T) {
	inbox := NewInbox()
	for seq := range uint64(5) {
		inbox.Tell(journal.Event{Seq: seq}, &journal.ActionRetried{})
	}
	unread, _ := inbox.takeAll()
	for i, n := range unread {
		if n.event.Seq != uint64(i) {
			t.Errorf("event %d comes as number %d", n.event.Seq, i)
		}
	}
}
