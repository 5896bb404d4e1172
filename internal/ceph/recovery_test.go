package ceph

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// threeHosts is the cluster that the answers about placement groups were recorded
// of; node2 is lost.
func threeHosts(mark func(osds []OSD)) Tree {
	var tree Tree
	for id, host := range map[int]string{9: "node1", 10: "node2", 11: "node2", 12: "node3"} {
		osd := OSD{Ref: Ref{ID: id}, Host: host, Exists: true, Up: host != "node2", DeviceClass: "hdd"}
		if osd.Up {
			osd.Reweight = 1
		}
		tree.OSDs = append(tree.OSDs, osd)
	}
	slices.SortFunc(tree.OSDs, func(a, b OSD) int { return a.ID - b.ID })
	if mark != nil {
		mark(tree.OSDs)
	}
	return tree
}

func recordedPools(t *testing.T) []Pool {
	t.Helper()
	dumped, err := parsePools(recorded(t, "osd-dump-pools"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := parseRules(recorded(t, "crush-rule-dump"))
	if err != nil {
		t.Fatal(err)
	}
	return joinPools(dumped.pools, dumped.ruleOf, rules)
}

func recordedPGs(t *testing.T, name string) []PG {
	t.Helper()
	pgs, err := parsePGs(recorded(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return pgs
}

// of keeps what belongs to the pools of those ids.
func of(pools []Pool, pgs []PG, ids ...int) ([]Pool, []PG) {
	return slices.DeleteFunc(pools, func(p Pool) bool { return !slices.Contains(ids, p.ID) }),
		slices.DeleteFunc(pgs, func(g PG) bool { return !slices.Contains(ids, g.Pool) })
}

func TestThePoolsOfARealCephAreRead(t *testing.T) {
	want := []Pool{
		{ID: 1, Name: "replicapool", Size: 3, MinSize: 2, PGs: 8, Domain: "host"},
		{ID: 2, Name: "ecpool", Size: 3, MinSize: 2, PGs: 4, Erasure: true, Domain: "osd"},
		{ID: 3, Name: "single", Size: 2, MinSize: 1, PGs: 4, Domain: "host", DeviceClass: "hdd"},
	}
	if diff := cmp.Diff(want, recordedPools(t)); diff != "" {
		t.Errorf("read wrongly (- wanted, + got):\n%s", diff)
	}
}

func TestThePlacementGroupsOfARealCephAreRead(t *testing.T) {
	pgs := recordedPGs(t, "pg-dump-host-down")
	want := PG{ID: "2.3", Pool: 2, State: "down", Acting: []int{9}}
	i := slices.IndexFunc(pgs, func(g PG) bool { return g.ID == want.ID })
	if diff := cmp.Diff(want, pgs[i]); diff != "" || len(pgs) != 16 {
		t.Errorf("%d are read, one of them wrongly (- wanted, + got):\n%s", len(pgs), diff)
	}
	old, err := parsePGs([]byte(`[{"pgid":"1.0","state":"active+clean","acting":[0,1]}]`))
	if err != nil || len(old) != 1 {
		t.Errorf("as before Nautilus: %v, %v", old, err)
	}
	if _, err := parsePGs([]byte(`{"pg_ready":false,"pg_stats":[]}`)); err == nil {
		t.Error("a mgr that does not know them all says nothing, and that passes for none")
	}
}

func TestARuleThatIsMoreThanPlainSaysNothing(t *testing.T) {
	take, emit := ruleStep{Op: "take", ItemName: "default"}, ruleStep{Op: "emit"}
	leaf := ruleStep{Op: "chooseleaf_firstn", Type: "host"}
	for name, steps := range map[string][]ruleStep{
		"two choices":          {take, {Op: "choose_firstn", Type: "rack"}, {Op: "chooseleaf_firstn", Type: "host"}, emit},
		"two roots":            {take, leaf, emit, take, leaf, emit},
		"a number of its own":  {take, {Op: "chooseleaf_firstn", Num: 2, Type: "host"}, emit},
		"hosts and not leaves": {take, {Op: "choose_firstn", Type: "host"}, emit},
		"nothing":              nil,
	} {
		if got := placementOf(steps); got != (placement{}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestThreeCopiesWithTwoHostsLeftAreStuckAsARealCephHasThem(t *testing.T) {
	pools, pgs := of(recordedPools(t), recordedPGs(t, "pg-dump-out"), 1, 3)
	stuck, why := Stuck(threeHosts(nil), pools, pgs, []int{10, 11})
	want := "pool replicapool needs 3 copies on different hosts; only 2 are left; " +
		"all 12 placement groups are active with as many copies as possible, at least min_size"
	if !stuck || why != want {
		t.Errorf("stuck: %v, %q", stuck, why)
	}
}

func TestCephIsNotStuckWhileItHasSomethingToDo(t *testing.T) {
	pg := func(state string, acting ...int) PG { return PG{ID: "1.0", Pool: 1, State: state, Acting: acting} }
	pool := Pool{ID: 1, Name: "p", Size: 3, MinSize: 2, PGs: 1, Domain: DomainHost}
	in := func(id int) func([]OSD) {
		return func(osds []OSD) {
			i := slices.IndexFunc(osds, func(o OSD) bool { return o.ID == id })
			osds[i].Up, osds[i].Reweight = true, 1
		}
	}
	down := func(id int) func([]OSD) {
		return func(osds []OSD) {
			osds[slices.IndexFunc(osds, func(o OSD) bool { return o.ID == id })].Up = false
		}
	}
	lost := []int{10, 11}
	rest := "active+undersized+degraded"
	for name, test := range map[string]struct {
		pool  Pool
		pg    PG
		mark  func([]OSD)
		lost  []int
		stuck bool
	}{
		"as many copies as hosts":          {pool, pg(rest, 9, 12), nil, lost, true},
		"without objects":                  {pool, pg("active+undersized", 9, 12), nil, lost, true},
		"while it is scrubbed":             {pool, pg(rest+"+scrubbing+deep", 9, 12), nil, lost, true},
		"one copy, min_size 2":             {pool, pg(rest, 9), nil, lost, false},
		"one host, min_size 2":             {pool, pg(rest, 9), down(12), lost, false},
		"one copy could be two":            {Pool{ID: 1, Size: 3, MinSize: 1, PGs: 1, Domain: DomainHost}, pg(rest, 9), nil, lost, false},
		"one OSD twice":                    {pool, pg(rest, 9, 9), nil, lost, false},
		"not active":                       {pool, pg("undersized+degraded+peered", 9, 12), nil, lost, false},
		"recovers":                         {pool, pg("active+recovering+undersized+degraded", 9, 12), nil, lost, false},
		"is about to be filled":            {pool, pg("active+undersized+degraded+remapped+backfill_wait", 9, 12), nil, lost, false},
		"unfound objects":                  {pool, pg("active+recovery_unfound+undersized+degraded", 9, 12), nil, lost, false},
		"inconsistent":                     {pool, pg(rest+"+inconsistent", 9, 12), nil, lost, false},
		"stale":                            {pool, pg("stale+"+rest, 9, 12), nil, lost, false},
		"remapped to one OSD twice":        {pool, pg("active+clean+remapped", 12, 9, 12), nil, lost, false},
		"the mgr has not heard of it":      {pool, pg(rest, 9, 10), nil, lost, false},
		"nor of another loss":              {pool, pg(rest, 9, 10), nil, nil, false},
		"nor of one of three":              {pool, pg(rest, 9, 12, 10), nil, lost, false},
		"lacks a copy, and no OSD for it":  {pool, pg("active+degraded", 9, 12), nil, lost, false},
		"all copies wanted":                {Pool{ID: 1, Size: 3, MinSize: 3, PGs: 1, Domain: DomainHost}, pg(rest, 9, 12), nil, lost, false},
		"a host is left that is out":       {pool, pg(rest, 9, 12), func(o []OSD) { o[1].Up = true }, nil, true},
		"nor of anything":                  {pool, pg("active+clean", 9, 10, 12), nil, lost, false},
		"a host is left":                   {pool, pg(rest, 9, 12), in(10), nil, false},
		"a host may be back soon":          {pool, pg(rest, 9, 12), func(o []OSD) { o[1].Reweight = 1 }, nil, false},
		"its OSD does not serve yet":       {Pool{ID: 1, Size: 4, MinSize: 2, PGs: 1, Domain: DomainHost}, pg(rest, 9, 10, 12), func(o []OSD) { o[1].Reweight = 1 }, nil, false},
		"that host is the lost one":        {pool, pg(rest, 9, 12), in(10), lost, true},
		"as many hosts as copies":          {Pool{ID: 1, Size: 2, MinSize: 1, PGs: 1, Domain: DomainHost}, pg("active+clean", 9, 12), nil, lost, false},
		"a placement group is not known":   {Pool{ID: 1, Size: 3, MinSize: 2, PGs: 2, Domain: DomainHost}, pg(rest, 9, 12), nil, lost, false},
		"copies spread over racks":         {Pool{ID: 1, Size: 3, MinSize: 2, PGs: 1, Domain: "rack"}, pg(rest, 9, 12), nil, lost, false},
		"a rule that is not understood":    {Pool{ID: 1, Size: 3, MinSize: 2, PGs: 1}, pg(rest, 9, 12), nil, lost, false},
		"hosts without OSDs of the class":  {Pool{ID: 1, Size: 2, MinSize: 1, PGs: 1, Domain: DomainHost, DeviceClass: "ssd"}, pg(rest, 9), func(o []OSD) { o[0].DeviceClass = "ssd" }, lost, true},
		"OSDs are wanted, and there are 2": {Pool{ID: 1, Size: 3, MinSize: 2, PGs: 1, Domain: DomainOSD}, pg(rest, 9, 12), nil, lost, true},
	} {
		t.Run(name, func(t *testing.T) {
			stuck, why := Stuck(threeHosts(test.mark), []Pool{test.pool}, []PG{test.pg}, test.lost)
			if stuck != test.stuck {
				t.Errorf("stuck: %v, %q", stuck, why)
			}
		})
	}
}

func TestAPoolWithEnoughHostsMustBeCleanBeforeCephIsStuck(t *testing.T) {
	pools := []Pool{
		{ID: 1, Name: "three", Size: 3, MinSize: 2, PGs: 1, Domain: DomainHost},
		{ID: 2, Name: "two", Size: 2, MinSize: 1, PGs: 1, Domain: DomainHost},
	}
	for state, want := range map[string]bool{"active+clean": true, "active+undersized+degraded": false, "active+recovering+degraded": false} {
		pgs := []PG{
			{ID: "1.0", Pool: 1, State: "active+undersized+degraded", Acting: []int{9, 12}},
			{ID: "2.0", Pool: 2, State: state, Acting: []int{9, 12}},
		}
		stuck, why := Stuck(threeHosts(nil), pools, pgs, []int{10, 11})
		if stuck != want || (!want && !strings.Contains(why, "placement group 2.0 is "+state)) {
			t.Errorf("%s: stuck: %v, %q", state, stuck, why)
		}
	}
}

func TestAPlacementGroupOfAPoolThatIsNotKnownIsWork(t *testing.T) {
	pools := []Pool{{ID: 1, Name: "p", Size: 3, MinSize: 2, PGs: 1, Domain: DomainHost}}
	pgs := []PG{
		{ID: "1.0", Pool: 1, State: "active+undersized+degraded", Acting: []int{9, 12}},
		{ID: "7.0", Pool: 7, State: "active+undersized+degraded", Acting: []int{9, 12}},
	}
	if stuck, why := Stuck(threeHosts(nil), pools, pgs, []int{10, 11}); stuck || !strings.Contains(why, "7.0 is unknown") {
		t.Errorf("stuck: %v, %q", stuck, why)
	}
}
