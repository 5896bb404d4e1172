package ceph

import (
	"strings"
	"testing"
)

// twoHosts are two hosts with an OSD each, and a third that is down.
func twoHosts() Tree {
	tree := Tree{}
	for id, host := range []string{"a", "b", "b", "c"} {
		tree.OSDs = append(tree.OSDs, OSD{Ref: Ref{ID: id}, Host: host, Exists: true, Up: host != "c", Reweight: 1})
	}
	return tree
}

func TestCopiesAreCompleteOnlyWhenEveryPlacementGroupIsAtRestWithAllOfThem(t *testing.T) {
	three := Pool{ID: 1, Name: "three", Size: 3, MinSize: 2, PGs: 1, Domain: DomainHost}
	for name, test := range map[string]struct {
		pool Pool
		pg   PG
		want string
	}{
		"undersized, with two":           {three, PG{State: "active+undersized+degraded", Acting: []int{0, 1}}, ""},
		"undersized, without objects":    {three, PG{State: "active+undersized", Acting: []int{0, 1}}, ""},
		"while it is scrubbed":           {three, PG{State: "active+undersized+degraded+scrubbing+deep", Acting: []int{0, 1}}, ""},
		"clean, already":                 {Pool{ID: 1, Size: 2, PGs: 1, Domain: DomainHost}, PG{State: "active+clean", Acting: []int{0, 1}}, ""},
		"clean, with one that is enough": {Pool{ID: 1, Size: 1, PGs: 1, Domain: DomainHost}, PG{State: "active+clean", Acting: []int{0}}, ""},
		"on OSDs":                        {Pool{ID: 1, Size: 2, PGs: 1, Domain: DomainOSD}, PG{State: "active+clean", Acting: []int{1, 2}}, ""},
		"with parts":                     {Pool{ID: 1, Size: 6, PGs: 1, Erasure: true}, PG{State: "active+clean", Acting: []int{1}}, ""},

		"one copy":                           {three, PG{State: "active+undersized+degraded", Acting: []int{0}}, "has 1 of 2 copies"},
		"both on one host":                   {three, PG{State: "active+undersized+degraded", Acting: []int{1, 2}}, "has 1 of 2 copies"},
		"one on an OSD that is down":         {three, PG{State: "active+undersized+degraded", Acting: []int{0, 3}}, "has 1 of 2 copies"},
		"one on an OSD that nobody knows":    {three, PG{State: "active+undersized+degraded", Acting: []int{0, 9}}, "has 1 of 2 copies"},
		"clean, says a mgr that is too late": {three, PG{State: "active+clean", Acting: []int{0, 3}}, "has 1 of 2 copies"},
		"recovering":                         {three, PG{State: "active+recovering+undersized+degraded", Acting: []int{0, 1}}, "is active+recovering"},
		"waiting to":                         {three, PG{State: "active+recovery_wait+undersized+degraded", Acting: []int{0, 1}}, "is active+recovery_wait"},
		"moving":                             {three, PG{State: "active+undersized+degraded+remapped+backfilling", Acting: []int{0, 1}}, "is active+undersized"},
		"too full":                           {three, PG{State: "active+undersized+degraded+backfill_toofull", Acting: []int{0, 1}}, "toofull"},
		"an object unfound":                  {three, PG{State: "active+recovery_unfound+undersized+degraded", Acting: []int{0, 1}}, "unfound"},
		"inconsistent":                       {three, PG{State: "active+undersized+degraded+inconsistent", Acting: []int{0, 1}}, "inconsistent"},
		"clean and inconsistent":             {three, PG{State: "active+clean+inconsistent", Acting: []int{0, 1}}, "inconsistent"},
		"degraded, with all":                 {three, PG{State: "active+undersized+degraded", Acting: []int{0, 1, 2}}, "is active+undersized"},
		"degraded, not undersized":           {three, PG{State: "active+degraded", Acting: []int{0, 1}}, "is active+degraded"},
		"peering":                            {three, PG{State: "peering", Acting: []int{0, 1}}, "is peering"},
		"not served":                         {three, PG{State: "undersized+degraded+peered", Acting: []int{0, 1}}, "is undersized"},
		"stale":                              {three, PG{State: "stale+active+undersized+degraded", Acting: []int{0, 1}}, "is stale"},
		"parts that lack":                    {Pool{ID: 1, Size: 3, PGs: 1, Erasure: true}, PG{State: "active+undersized+degraded", Acting: []int{0, 1}}, "is active+undersized"},
		"a pool with more placement groups":  {Pool{ID: 1, Size: 3, PGs: 2, Domain: DomainHost}, PG{State: "active+clean", Acting: []int{0, 1}}, "1 placement groups are known"},
	} {
		test.pg.ID, test.pg.Pool = "1.0", 1
		got := Incomplete(twoHosts(), []Pool{test.pool}, []PG{test.pg}, 2)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: it says %q, want %q", name, got, test.want)
		}
	}
	if got := Incomplete(twoHosts(), nil, []PG{{ID: "7.0", Pool: 7, State: "active+clean"}}, 1); !strings.Contains(got, "is not known") {
		t.Errorf("a pool that nobody knows: %q", got)
	}
}

func TestWithAHostLostARealCephHasTwoCompleteCopies(t *testing.T) {
	pools, stuck := of(recordedPools(t), recordedPGs(t, "pg-dump-out"), 1)
	if got := Incomplete(threeHosts(nil), pools, stuck, 2); got != "" {
		t.Errorf("it says %q", got)
	}
	if got := Incomplete(threeHosts(nil), pools, stuck, 3); !strings.Contains(got, "has 2 of 3 copies") {
		t.Errorf("of three it says %q", got)
	}
}
