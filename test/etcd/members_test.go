package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/etcd"
	"github.com/replicatedhq/ekco/test/await"
	"github.com/replicatedhq/ekco/test/rig"
)

var program string

func TestMain(m *testing.M) {
	rig.Main(m, rig.Options{
		Fetch: []string{"../controlplane/build.sh"},
		Prepare: func(ctx context.Context, _ string) (err error) {
			program, err = Build(ctx, "../controlplane")
			return err
		},
		Parallel: 5, // which mostly wait for members to agree
	})
}

// members lists the members through those of nodes.
func (c *Cluster) members(via ...string) []etcd.Member {
	c.t.Helper()
	members, err := c.Client(via...).Members(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return members
}

// member finds the member of a node as EKCO does.
func (c *Cluster) member(node string, via ...string) etcd.Member {
	c.t.Helper()
	found, err := etcd.Match(c.members(via...), node, []string{c.PeerURL(node)}, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

// wantNames checks whose members there are.
func (c *Cluster) wantNames(via string, want ...string) {
	c.t.Helper()
	var names []string
	for _, m := range c.members(via) {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	if !slices.Equal(names, want) {
		c.t.Errorf("the members are %q, want %q", names, want)
	}
}

func TestADeadMemberIsRemovedByItsIDOnce(t *testing.T) {
	t.Parallel()
	c := Start(t, program, "a", "b", "c")
	c.Kill("c")
	client := c.Client("a", "b")
	members := c.members("a", "b")
	dead := c.member("c", "a", "b")
	var health []etcd.EndpointHealth
	await.Until(t, await.HangTimeout, "one member leads", func() (bool, string) { // they are asked one by one, and another may come to lead
		health = client.Health(t.Context(), members)
		leaders := 0
		for _, h := range health {
			if h.Leader {
				leaders++
			}
		}
		return leaders == 1, fmt.Sprintf("%+v", health)
	})
	for _, h := range health {
		if h.Healthy != (h.Name != "c") || h.Healthy != (h.Error == "") {
			t.Errorf("health of %s is %+v", h.Name, h)
		}
	}
	if len(health) != 3 {
		t.Errorf("the health is %+v", health)
	}
	if p := etcd.ProjectRemoval(members, health, dead.ID); !p.Keeps || p.Voters != 2 || p.HealthyVoters != 2 {
		t.Errorf("the projection is %+v", p)
	}
	if err := client.RemoveMember(t.Context(), dead.ID); err != nil {
		t.Fatal(err)
	}
	c.wantNames("a", "a", "b")
	c.Put("b", "k", "v")
	if err := client.RemoveMember(t.Context(), dead.ID); !errors.Is(err, etcd.ErrNoMember) {
		t.Errorf("the second removal says %v", err)
	}
	if _, err := etcd.Match(c.members("b"), "c", []string{c.PeerURL("c")}, nil); !errors.Is(err, etcd.ErrNoMember) {
		t.Errorf("the member is found again: %v", err)
	}
}

func TestARemovalThatWouldLoseQuorumIsRefusedByTheProjectionAndByEtcd(t *testing.T) {
	t.Parallel()
	c := Start(t, program, "a", "b", "c")
	client := c.Client("a", "b")
	// That etcd takes a learner shows that it is past the seconds after its
	// start in which it refuses everything.
	c.Add("a", "l", c.FreeIP(), true)
	if err := client.RemoveMember(t.Context(), c.idOf(c.members("a"), "")); err != nil {
		t.Fatal(err)
	}
	c.Kill("c")
	members := c.members("a", "b")
	live := c.member("b", "a", "b")
	if p := etcd.ProjectRemoval(members, client.Health(t.Context(), members), live.ID); p.Keeps || p.HealthyVoters != 1 || p.Quorum != 2 {
		t.Errorf("the projection is %+v", p)
	}
	err := client.RemoveMember(t.Context(), live.ID)
	if !errors.Is(err, etcd.ErrUnhealthy) {
		t.Errorf("etcd says %v", err)
	}
	c.wantNames("a", "a", "b", "c")

	c.Kill("b") // now there is no quorum at all
	client, err = etcd.NewClient(c.Endpoints("a", "b"), etcd.Options{
		CertificatesDir: c.CertificatesDir(), CallTimeout: 2 * time.Second, HealthTimeout: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Members(t.Context()); !errors.Is(err, etcd.ErrUnavailable) {
		t.Errorf("without quorum the members are listed: %v", err)
	}
	client = c.Client("a", "b")
	if _, err := client.Members(t.Context()); !errors.Is(err, etcd.ErrNoQuorum) || !strings.Contains(err.Error(), "etcd has no quorum") {
		t.Errorf("etcd without quorum is called %v", err)
	}
	health := client.Health(t.Context(), members)
	if slices.ContainsFunc(health, func(h etcd.EndpointHealth) bool { return h.Healthy }) {
		t.Errorf("without quorum health is %+v", health)
	}
	if p := etcd.ProjectRemoval(members, health, c.idOf(members, "c")); p.Keeps {
		t.Errorf("without quorum the projection is %+v", p)
	}
}

func (c *Cluster) idOf(members []etcd.Member, name string) etcd.ID {
	c.t.Helper()
	for _, m := range members {
		if m.Name == name {
			return m.ID
		}
	}
	c.t.Fatalf("%s is not among %v", name, members)
	return 0
}

func TestARemovalInterruptedAtAnyMomentIsFinishedByRepeatingIt(t *testing.T) {
	t.Parallel()
	c := Start(t, program, "a", "b", "c")
	c.Kill("c")
	client := c.Client("a", "b")
	dead := c.member("c", "a", "b")
	interrupted := 0
	for limit := 500 * time.Microsecond; ; limit = limit * 3 / 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err := client.RemoveMember(ctx, dead.ID)
		cancel()
		if err == nil || errors.Is(err, etcd.ErrNoMember) {
			break
		}
		// Whose clock ran out first, this one or that of etcd, is a matter of chance.
		if !errors.Is(err, etcd.ErrUnavailable) {
			t.Fatalf("interrupted after %s: %v", limit, err)
		}
		interrupted++
	}
	if interrupted == 0 {
		t.Error("nothing was interrupted")
	}
	c.wantNames("a", "a", "b")
	c.Put("b", "k", "v")
}

func TestTwoDeadMembersOfFiveAreRemovedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c := Start(t, program, "a", "b", "c", "d", "e")
	c.Kill("d", "e")
	c.WaitHealthy("a", "b", "c")
	client := c.Client("a", "b", "c", "d", "e")
	for _, name := range []string{"e", "d"} {
		members := c.members("a", "b", "c")
		dead := c.member(name, "a", "b", "c")
		health := client.Health(t.Context(), members)
		if p := etcd.ProjectRemoval(members, health, dead.ID); !p.Keeps || p.HealthyVoters != 3 {
			t.Errorf("without %s: %+v", name, p)
		}
		if name == "e" {
			if p := etcd.ProjectRemoval(members, health, c.idOf(members, "a")); p.Keeps {
				t.Errorf("without a, while two are dead: %+v", p)
			}
		}
		if err := client.RemoveMember(t.Context(), dead.ID); err != nil {
			t.Fatal(err)
		}
	}
	c.wantNames("a", "a", "b", "c")
	c.Put("c", "k", "v")
}
