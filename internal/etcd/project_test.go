package etcd_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/replicatedhq/ekco/internal/etcd"
)

// shape describes a cluster, a letter a member: H a healthy voter, D a dead one,
// U one that never started, L a healthy learner, M a dead one. The member in
// brackets is the one to be removed.
type shape string

func (s shape) read() (members []etcd.Member, health []etcd.EndpointHealth, remove etcd.ID) {
	var id etcd.ID
	for i, letter := range s {
		if letter == '[' || letter == ']' {
			continue
		}
		id++
		m := etcd.Member{ID: id, Name: fmt.Sprintf("m%d", id), Learner: letter == 'L' || letter == 'M'}
		if letter == 'U' {
			m.Name = ""
		}
		members = append(members, m)
		health = append(health, etcd.EndpointHealth{Member: id, Healthy: letter == 'H' || letter == 'L'})
		if i > 0 && s[i-1] == '[' {
			remove = id
		}
	}
	return members, health, remove
}

func TestARemovalIsRefusedWhenQuorumWouldBeLost(t *testing.T) {
	for s, want := range map[shape]struct {
		voters, healthy, quorum, learners int
		keeps                             bool
		says                              string
	}{
		"[D]HH":    {2, 2, 2, 0, true, "none more may fail until a primary joins"},
		"D[H]H":    {2, 1, 2, 0, false, "etcd would stop for good"},
		"[H]HH":    {2, 2, 2, 0, true, "2 voters would remain, of which 2 answer and 2 are needed"},
		"[D]DH":    {2, 1, 2, 0, false, "etcd has no quorum now: 1 of 3 voters answer and 2 are needed"},
		"[D]HHHH":  {4, 4, 3, 0, true, "1 more may fail"},
		"[D]DHHH":  {4, 3, 3, 0, true, "none more may fail"},
		"DD[H]HH":  {4, 2, 3, 0, false, "4 voters would remain, of which 2 answer and 3 are needed"},
		"[D]DDHH":  {4, 2, 3, 0, false, "no quorum now"},
		"[D]HHH":   {3, 3, 2, 0, true, "1 more may fail"},
		"[D]DHH":   {3, 2, 2, 0, false, "no quorum now: 2 of 4 voters answer and 3 are needed"},
		"D[H]HH":   {3, 2, 2, 0, true, "none more may fail"},
		"[D]H":     {1, 1, 1, 0, false, "no quorum now: 1 of 2"},
		"[H]H":     {1, 1, 1, 0, true, "1 voter would remain, of which 1 answer and 1 are needed"},
		"[H]":      {0, 0, 1, 0, false, "the last voter"},
		"[D]":      {0, 0, 1, 0, false, "the last voter"},
		"[U]HH":    {2, 2, 2, 0, true, "Without member 1,"},
		"U[D]HHH":  {4, 3, 3, 0, true, "none more may fail"},
		"UU[H]HH":  {4, 2, 3, 0, false, "would stop"},
		"[D]HHL":   {2, 2, 2, 1, true, "none more may fail"},
		"D[H]HL":   {2, 1, 2, 1, false, "would stop"},
		"DHH[L]":   {3, 2, 2, 0, true, "a learner, which does not vote"},
		"DHH[M]":   {3, 2, 2, 0, true, "a learner"},
		"DDH[M]":   {3, 1, 2, 0, false, "no quorum now"},
		"DHH":      {3, 2, 2, 0, true, "no such member"},
		"[D]HHHML": {3, 3, 2, 2, true, "1 more may fail"},
	} {
		t.Run(string(s), func(t *testing.T) {
			got := etcd.ProjectRemoval(s.read())
			if got.Voters != want.voters || got.HealthyVoters != want.healthy || got.Quorum != want.quorum ||
				got.Learners != want.learners || got.Keeps != want.keeps || !strings.Contains(got.Reason, want.says) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if !strings.HasSuffix(got.Reason, ".") {
				t.Errorf("%q is not a sentence", got.Reason)
			}
		})
	}
}

func TestAVoterIsHealthyWhenOneOfItsEndpointsIs(t *testing.T) {
	members, health, remove := shape("[D]HH").read()
	health = append(health, etcd.EndpointHealth{Member: 3, Healthy: false})
	health = append([]etcd.EndpointHealth{{Member: 2, Healthy: false}}, health...)
	if got := etcd.ProjectRemoval(members, health, remove); !got.Keeps || got.HealthyVoters != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestAMemberNobodyAskedIsNotHealthy(t *testing.T) {
	members, _, remove := shape("[H]HH").read()
	if got := etcd.ProjectRemoval(members, nil, remove); got.Keeps || got.HealthyVoters != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestARemovalThatIsAllowedLeavesAQuorumAndCanBeAgreedOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.SliceOfN(rapid.SampledFrom([]string{"H", "D", "U", "L", "M"}), 1, 9).Draw(t, "members")
		at := rapid.IntRange(0, len(letters)-1).Draw(t, "remove")
		letters[at] = "[" + letters[at] + "]"
		s := shape(strings.Join(letters, ""))
		got := etcd.ProjectRemoval(s.read())
		all := strings.NewReplacer("[", "", "]", "").Replace(string(s))
		voters, healthy := len(strings.Trim(strings.Map(keep("HDU"), all), " ")), strings.Count(all, "H")
		agrees := 2*healthy > voters
		if got.Keeps && (!agrees || 2*got.HealthyVoters <= got.Voters) {
			t.Fatalf("%s is allowed: %+v", s, got)
		}
		// A dead voter's removal is always allowed while there is a quorum.
		if dead := strings.Contains(string(s), "[D]"); dead && agrees && !got.Keeps {
			t.Fatalf("%s is refused: %+v", s, got)
		}
	})
}

func keep(letters string) func(rune) rune {
	return func(r rune) rune {
		if strings.ContainsRune(letters, r) {
			return r
		}
		return -1
	}
}
