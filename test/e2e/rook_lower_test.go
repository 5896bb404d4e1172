package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/journal"
)

// loseHostForGood takes the power from the OSDs of one of three hosts, which lowers nothing;
// then from its node and its member of etcd, of all of which EKCO purges the cluster by itself,
// and from a monitor. When Ceph has the host no
// more, and no sooner, every pool has its copies lowered to the hosts that are left, one after
// the other; and nothing else follows.
func (c *rookCluster) loseHostForGood(o *operator, host string) {
	c.t.Helper()
	rest := "nodes primary-1 primary-2 worker-1 worker-2"
	seen := len(o.events())
	var osds []string
	for _, id := range c.ceph.Hosts()[host] {
		osds = append(osds, fmt.Sprintf("osd.%d", id))
	}
	if len(osds) != 2 {
		c.t.Fatalf("%s has %q", host, osds)
	}
	c.ceph.StopHost(host)
	c.ceph.StopAdded("mon.m1")
	seldom(c.t, "EKCO sees that the host is lost", func() (bool, string) {
		for _, event := range o.events()[seen:] {
			if event.Type == journal.TypeThingObserved && strings.Contains(string(event.Payload), `"hosts":["worker-1","worker-2"]`) {
				return true, ""
			}
		}
		return false, o.shown()
	})
	began := time.Now()
	c.node("lose", host)
	c.etcd.Kill(host)
	seldom(c.t, "the purge is done by itself", func() (bool, string) {
		_, ended := o.purges()
		_, over := ended[host]
		return over, o.shown()
	})
	c.t.Logf("%s is purged %s after it was lost", host, time.Since(began).Round(100*time.Millisecond))
	tree := strings.Fields(c.ceph.Ceph("osd", "tree"))
	for _, gone := range append([]string{host}, osds...) {
		if slices.Contains(tree, gone) {
			c.t.Errorf("%s is left in %q", gone, tree)
		}
	}
	if c.nodeExists(host) {
		c.t.Error("its Node is left")
	}
	if members := strings.Fields(c.members("primary-1")); len(members) != 2 || slices.Contains(members, host) {
		c.t.Errorf("etcd's members are %q", members)
	}
	if status := c.clusterStatus(); strings.Contains(status, host) || !strings.Contains(status, "primary-2") {
		c.t.Errorf("kubeadm knows of\n%s", status)
	}
	seldom(c.t, "the lowering is shown before it is done", func() (bool, string) {
		text := o.mustEkco("status")
		return strings.Contains(text, "lower-copies"), text
	})
	c.waitStorage(rest + ", copies 2 2 2 2 2, mons 3, mgrs 2")
	c.t.Logf("and the copies are lowered %s after it was lost", time.Since(began).Round(100*time.Millisecond))
	c.waitCopies(2)
	seldom(c.t, "nothing is left to do", func() (bool, string) {
		status := o.status()
		return len(status.Refusals) == 0 && len(status.Actions) == 0, fmt.Sprintf("refused are %+v, open are %+v", status.Refusals, status.Actions)
	})
	o.wantLoweredOneByOne(5)
	if health := c.ceph.Ceph("health", "detail"); strings.Contains(health, "PG_DEGRADED") {
		c.t.Errorf("Ceph says %s", health)
	}
}

// wantLoweredOneByOne checks that so many numbers were lowered, each after the purge of the host
// was done with Ceph, and none before Ceph had carried out the one before; and none was raised
// after that.
func (o *operator) wantLoweredOneByOne(count int) {
	o.t.Helper()
	var open string
	ended, crush, raised := 0, false, false
	for _, event := range o.events() {
		payload, err := event.Decode()
		if err != nil {
			o.t.Fatal(err)
		}
		switch p := payload.(type) {
		case *journal.StepDone:
			crush = crush || p.Step == "remove-crush-host"
		case *journal.StepStarted:
			switch lowers := strings.HasPrefix(event.Action, "lower-copies-"); {
			case lowers && (!crush || open != "" && open != event.Action):
				o.t.Errorf("%s begins while %q is open; the CRUSH host is gone: %v", event.Action, open, crush)
			case lowers:
				open = event.Action
			}
		case *journal.ActionRequested:
			raised = raised || crush && p.Kind == journal.ActionRaiseCopies
		case *journal.ActionEnded:
			if event.Action != open {
				continue
			}
			if open = ""; p.Outcome == journal.OutcomeDone {
				ended++
			}
		}
	}
	if ended != count || raised {
		o.t.Errorf("%d numbers were lowered, want %d; copies were raised again: %v", ended, count, raised)
	}
}

// stored is data in the pools that users have, which somebody reads all the time.
type stored struct {
	mu      sync.Mutex
	reads   int
	longest time.Duration
	wrong   []string
	last    func() error
}

// often is how often somebody reads an object.
const often = time.Second

// store writes objects into the pools and reads them, by their checksums, until the test ends.
func (c *rookCluster) store() *stored {
	c.t.Helper()
	sums := map[[2]string][32]byte{}
	for _, pool := range []string{"replicapool", "rook-shared-fs-metadata", "rook-shared-fs-data0", "rook-ceph-store.rgw.buckets.index", "rook-ceph-store.rgw.buckets.data"} {
		for i := range 4 {
			text := strings.Repeat(content(i)+pool, 50)
			c.ceph.Write(pool, object(i), text)
			sums[[2]string{pool, object(i)}] = sha256.Sum256([]byte(text))
		}
	}
	s := &stored{}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	one := func(at [2]string) error {
		text, err := c.ceph.TryRead(at[0], at[1])
		if err == nil && sha256.Sum256([]byte(text)) != sums[at] {
			err = fmt.Errorf("%s of pool %s has other content: %.80q", at[1], at[0], text)
		}
		return err
	}
	s.last = func() error {
		for at := range sums {
			if err := one(at); err != nil {
				return err
			}
		}
		return nil
	}
	go func() {
		defer close(over)
		tick := time.NewTicker(often)
		defer tick.Stop()
		for {
			for at := range sums {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				began := time.Now()
				err := one(at)
				s.read(ctx, err, time.Since(began))
			}
		}
	}()
	c.t.Cleanup(func() {
		stop()
		<-over
	})
	return s
}

func (s *stored) read(ctx context.Context, err error, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	s.longest = max(s.longest, took)
	if err != nil && ctx.Err() == nil {
		s.wrong = append(s.wrong, err.Error())
	}
}

// wantReadable checks that everything could be read all the time, and can now.
func (s *stored) wantReadable(t *testing.T) {
	t.Helper()
	if err := s.last(); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Logf("%d reads, the longest took %s", s.reads, s.longest.Round(100*time.Millisecond))
	if len(s.wrong) > 0 {
		t.Errorf("%d of %d reads failed, the first: %s", len(s.wrong), s.reads, s.wrong[0])
	}
}

// waitDaemons waits until Ceph has three monitors that agree, and a manager that stands by.
func (c *rookCluster) waitDaemons() {
	c.t.Helper()
	var quorum struct {
		Names []string `json:"quorum_names"`
	}
	var managers struct {
		Standbys []struct{ Name string }
	}
	seldom(c.t, "the daemons have joined", func() (bool, string) {
		for into, args := range map[any][]string{&quorum: {"quorum_status", "-f", "json"}, &managers: {"mgr", "dump", "-f", "json"}} {
			if err := json.Unmarshal([]byte(c.ceph.Ceph(args...)), into); err != nil {
				return false, err.Error()
			}
		}
		slices.Sort(quorum.Names)
		return slices.Equal(quorum.Names, []string{"a", "m1", "m2"}) && len(managers.Standbys) == 1, fmt.Sprintf("%+v, %+v", quorum, managers)
	})
}
