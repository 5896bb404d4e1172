package etcdsim_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/internal/etcd/etcdsim"
	"github.com/replicatedhq/ekco/internal/sim"
)

// three is a cluster of the voters a, b and c.
func three() (c *etcdsim.Cluster, a, b, dead etcd.Member) {
	c = etcdsim.New()
	return c, c.Add("a", "10.0.0.1"), c.Add("b", "10.0.0.2"), c.Add("c", "10.0.0.3")
}

func wantNames(t *testing.T, c *etcdsim.Cluster, want ...string) {
	t.Helper()
	var names []string
	for _, m := range c.List() {
		names = append(names, m.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("the members are %q, want %q", names, want)
	}
}

func TestASimulatedDeadMemberIsRemovedOnce(t *testing.T) {
	c, _, _, dead := three()
	var hooks []string
	c.BeforeEffect = func(effect string) { hooks = append(hooks, "before "+effect) }
	c.AfterEffect = func(effect string) { hooks = append(hooks, "after "+effect) }
	c.Kill(dead.ID)
	if err := c.RemoveMember(t.Context(), dead.ID); err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveMember(t.Context(), dead.ID); !errors.Is(err, etcd.ErrNoMember) {
		t.Errorf("the second removal says %v", err)
	}
	wantNames(t, c, "a", "b")
	name := etcdsim.EffectOf(dead.ID)
	if want := []sim.Effect{{Name: name, Changed: true}, {Name: name}}; !slices.Equal(c.Effects(), want) || c.Count(name) != 2 {
		t.Errorf("effects %v", c.Effects())
	}
	if want := []string{"before " + name, "after " + name, "before " + name, "after " + name}; !slices.Equal(hooks, want) {
		t.Errorf("hooks %q", hooks)
	}
}

func TestTheSimulationRefusesWhatEtcdRefuses(t *testing.T) {
	c, a, b, dead := three()
	c.Kill(dead.ID)
	if err := c.RemoveMember(t.Context(), b.ID); !errors.Is(err, etcd.ErrUnhealthy) {
		t.Errorf("the removal of a live voter says %v", err)
	}
	c.Kill(b.ID)
	if _, err := c.Members(t.Context()); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("without quorum the members are listed: %v", err)
	}
	if err := c.RemoveMember(t.Context(), dead.ID); !errors.Is(err, etcd.ErrUnavailable) || c.Count(etcdsim.EffectOf(dead.ID)) != 0 {
		t.Errorf("without quorum the removal says %v", err)
	}
	for _, h := range c.Health(t.Context(), c.List()) {
		if h.Healthy || h.Leader || h.Error == "" {
			t.Errorf("without quorum: %+v", h)
		}
	}
	c.Revive(b.ID)
	unstarted := c.AddUnstarted("10.0.0.4")
	if err := c.RemoveMember(t.Context(), a.ID); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("two live voters of four are a quorum: %v", err)
	}
	c.Revive(dead.ID)
	if err := c.RemoveMember(t.Context(), unstarted.ID); err != nil {
		t.Errorf("a never-started voter is not removed: %v", err)
	}
	wantNames(t, c, "a", "b", "c")
}

func TestSimulatedHealthTellsLeaderLearnerAndReplacement(t *testing.T) {
	c, _, _, dead := three()
	learner := c.AddLearner("l", "10.0.0.5")
	c.Forget(dead.ID)
	c.Add("d", "10.0.0.3")
	health := c.Health(t.Context(), append(c.List(), dead))
	if len(health) != 5 || !health[0].Leader || health[1].Leader || !health[1].Healthy {
		t.Fatalf("health is %+v", health)
	}
	if h := health[2]; h.Member != learner.ID || !h.Learner || !h.Healthy || h.Leader {
		t.Errorf("the learner is %+v", h)
	}
	if h := health[4]; h.Healthy || h.Error == "" {
		t.Errorf("the replaced member is %+v", h)
	}
}

func TestTheSimulationIsReachedThroughLiveVotersAmongTheEndpointsOnly(t *testing.T) {
	c, a, b, dead := three()
	learner := c.AddLearner("l", "10.0.0.5")
	c.Kill(dead.ID)
	for name, test := range map[string]struct {
		endpoints []string
		want      error
	}{
		"a live voter":     {a.ClientURLs, nil},
		"one of them":      {append(slices.Clone(dead.ClientURLs), b.ClientURLs...), nil},
		"the dead one":     {dead.ClientURLs, etcd.ErrUnavailable},
		"a learner":        {learner.ClientURLs, etcd.ErrUnavailable},
		"somewhere else":   {[]string{"https://10.9.9.9:2379"}, etcd.ErrUnavailable},
		"a voter's peer":   {a.PeerURLs, etcd.ErrUnavailable},
		"nothing that is ": {[]string{}, errNoEndpoint},
	} {
		t.Run(name, func(t *testing.T) {
			api, err := c.Dial(test.endpoints)
			if errors.Is(test.want, errNoEndpoint) {
				if err == nil {
					t.Error("no endpoint was accepted")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := api.Members(t.Context()); !errors.Is(err, test.want) {
				t.Errorf("error is %v, want %v", err, test.want)
			}
		})
	}
	c.Cut(true)
	if _, err := c.Members(t.Context()); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("without a network: %v", err)
	}
	c.Cut(false)
	if _, err := c.Members(t.Context()); err != nil {
		t.Error(err)
	}
}

var errNoEndpoint = errors.New("no endpoint")

func TestALostAnswerIsAnErrorAfterTheEffect(t *testing.T) {
	c, _, _, dead := three()
	c.LoseAnswer(dead.ID)
	if err := c.RemoveMember(t.Context(), dead.ID); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("error is %v", err)
	}
	wantNames(t, c, "a", "b")
	if err := c.RemoveMember(t.Context(), dead.ID); !errors.Is(err, etcd.ErrNoMember) {
		t.Errorf("error is %v", err)
	}
}

func TestAJoiningMemberGetsItsNameWhenItStarts(t *testing.T) {
	c, _, _, dead := three()
	c.Forget(dead.ID)
	joining := c.AddUnstarted("10.0.0.3")
	found, err := etcd.Match(c.List(), "c", dead.PeerURLs, nil)
	if err != nil || found.ID != joining.ID {
		t.Fatalf("found %s, %v", found, err)
	}
	c.Start(joining.ID, "d", "10.0.0.3")
	if _, err := etcd.Confirm(c.List(), found, "c"); !errors.Is(err, etcd.ErrOtherMember) {
		t.Errorf("error is %v", err)
	}
	c.SetPeerURLs(joining.ID, "https://10.0.0.9:2380")
	if got := c.List()[2].PeerURLs; !slices.Equal(got, []string{"https://10.0.0.9:2380"}) {
		t.Errorf("peer URLs are %q", got)
	}
}

func TestLatencyTakesTimeAndHonoursTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _, dead := three()
		c.SetLatency(time.Minute)
		began := time.Now()
		if _, err := c.Members(t.Context()); err != nil || time.Since(began) != time.Minute {
			t.Errorf("took %s, %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.RemoveMember(ctx, dead.ID); !errors.Is(err, context.DeadlineExceeded) || len(c.List()) != 3 {
			t.Errorf("error is %v", err)
		}
		if h := c.Health(ctx, c.List())[0]; h.Healthy || h.Error == "" {
			t.Errorf("health is %+v", h)
		}
	})
}
