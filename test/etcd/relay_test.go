package etcdtest

import (
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/test/await"
)

func TestARemovalIsFinishedByRepeatingItWhetherQuestionOrAnswerWasLost(t *testing.T) {
	t.Parallel()
	c, relay := StartRelayed(t, program, "a", "b", "c")
	c.Kill("c")
	dead := c.member("c", "a", "b")
	direct, err := relay.Direct("a", "b")
	if err != nil {
		t.Fatal(err)
	}
	listed := func() bool {
		members, err := direct.Members(t.Context())
		if err != nil {
			t.Errorf("list the members past the relay: %v", err)
		}
		return slices.ContainsFunc(members, func(m etcd.Member) bool { return m.ID == dead.ID })
	}
	client, err := etcd.NewClient(c.Endpoints("a", "b"), etcd.Options{CertificatesDir: c.CertificatesDir(), CallTimeout: await.HangTimeout})
	if err != nil {
		t.Fatal(err)
	}
	relay.Watch(func() bool { return true }, nil)
	if err := client.RemoveMember(t.Context(), dead.ID); !errors.Is(err, etcd.ErrUnavailable) || !listed() {
		t.Errorf("the question was lost: %v; the member is listed: %t", err, listed())
	}
	relay.Watch(nil, func() bool { return !listed() })
	if err := client.RemoveMember(t.Context(), dead.ID); !errors.Is(err, etcd.ErrUnavailable) || listed() {
		t.Errorf("the answer was lost: %v; the member is listed: %t", err, listed())
	}
	relay.Watch(nil, nil)
	if err := client.RemoveMember(t.Context(), dead.ID); !errors.Is(err, etcd.ErrNoMember) {
		t.Errorf("repeated: %v", err)
	}
	c.wantNames("a", "a", "b")
}

func TestAConnectionThatARelayMadeWhileItWasClosedEnds(t *testing.T) {
	t.Parallel()
	client, ours := net.Pipe()
	member, theirs := net.Pipe()
	r := &Relay{open: make(map[io.Closer]bool)}
	r.close()
	r.ended.Go(func() { r.join(ours, theirs) })
	ended := make(chan struct{})
	go func() {
		r.ended.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(await.HangTimeout):
		t.Error("it is still open")
		_, _ = client.Close(), member.Close()
		<-ended
	}
}
