package etcdtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/etcd"
)

func TestALearnerNeitherVotesNorAnswersForTheCluster(t *testing.T) {
	t.Parallel()
	c := Start(t, program, "a", "b", "c")
	c.Add("a", "l", c.FreeIP(), true).Start("a", "b", "c")
	c.Kill("c")
	c.WaitHealthy("a", "b", "l")
	client := c.Client("l", "a", "b")
	members, err := client.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	health := client.Health(t.Context(), members)
	at := slices.IndexFunc(health, func(h etcd.EndpointHealth) bool { return h.Name == "l" })
	if !health[at].Learner || !health[at].Healthy || health[at].Leader {
		t.Errorf("the learner is %+v", health[at])
	}
	learner, dead := c.idOf(members, "l"), c.idOf(members, "c")
	if p := etcd.ProjectRemoval(members, health, dead); !p.Keeps || p.Voters != 2 || p.Learners != 1 {
		t.Errorf("without the dead voter: %+v", p)
	}
	if p := etcd.ProjectRemoval(members, health, c.idOf(members, "b")); p.Keeps {
		t.Errorf("the learner counts as a voter: %+v", p)
	}
	if _, err := c.Client("l").Members(t.Context()); !errors.Is(err, etcd.ErrUnavailable) || !strings.Contains(err.Error(), "learner") {
		t.Errorf("a learner alone lists the members: %v", err)
	}
	if err := client.RemoveMember(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	if p := etcd.ProjectRemoval(members, health, learner); !p.Keeps {
		t.Errorf("without the learner: %+v", p)
	}
	if err := client.RemoveMember(t.Context(), learner); err != nil {
		t.Fatal(err)
	}
	c.wantNames("a", "a", "b")
}

func TestAReplacementAtTheOldAddressSurvives(t *testing.T) {
	t.Parallel()
	c := Start(t, program, "a", "b", "c")
	c.Kill("c")
	client := c.Client("a", "b")
	dead := c.member("c", "a", "b")
	if err := client.RemoveMember(t.Context(), dead.ID); err != nil {
		t.Fatal(err)
	}
	joining := c.Add("a", "d", c.IP("c"), false)
	// Until it starts it has no name and could be c's, had d no Node there.
	if m, err := etcd.Match(c.members("a", "b"), "c", []string{c.PeerURL("c")}, []string{c.PeerURL("d")}); !errors.Is(err, etcd.ErrAmbiguous) {
		t.Errorf("the joining member is taken for c's: %s, %v", m, err)
	}
	unstarted := c.member("c", "a", "b")
	if unstarted.Name != "" || unstarted.ID == dead.ID {
		t.Errorf("found %s", unstarted)
	}
	joining.Start("a", "b")
	members := c.members("a", "b")
	if m, err := etcd.Confirm(members, unstarted, "c"); !errors.Is(err, etcd.ErrOtherMember) {
		t.Errorf("the replacement is taken for c: %s, %v", m, err)
	}
	if m, err := etcd.Match(members, "c", []string{c.PeerURL("c")}, nil); !errors.Is(err, etcd.ErrNoMember) {
		t.Errorf("the replacement is taken for c: %s, %v", m, err)
	}
	if err := client.RemoveMember(t.Context(), dead.ID); !errors.Is(err, etcd.ErrNoMember) {
		t.Errorf("the old member's removal says %v", err)
	}
	health := client.Health(t.Context(), []etcd.Member{dead})
	if health[0].Healthy || !strings.Contains(health[0].Error, "another member") {
		t.Errorf("the old member is healthy through its replacement: %+v", health[0])
	}
	c.wantNames("d", "a", "b", "d")
	c.Put("d", "k", "v")
}
