package ceph

import (
	"strings"
	"testing"
)

// twoHosts are two hosts with an OSD each, and a third that is down.
func twoHosts() Tree {
	tree := Tree{}
	for id, host := range []string{"a", "b", "b", "c", ""} {
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
		"two on OSDs in no host":             {three, PG{State: "active+undersized+degraded", Acting: []int{0, 4}}, "has 1 of 2 copies"},
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
		"a pool with more placement groups":  {Pool{ID: 1, Size: 3, PGs: 2, Domain: DomainHost}, PG{State: "active+clean", Acting: []int{0, 1}}, "the mgr knows 1"},
	} {
		test.pg.ID, test.pg.Pool = "1.0", 1
		got := WhyIncomplete(twoHosts(), []Pool{test.pool}, []PG{test.pg}, 2)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: it says %q, want %q", name, got, test.want)
		}
	}
	if got := WhyIncomplete(twoHosts(), nil, []PG{{ID: "7.0", Pool: 7, State: "active+clean"}}, 1); !strings.Contains(got, "is unknown") {
		t.Errorf("a pool that nobody knows: %q", got)
	}
}

// TestCopiesThatMoveAreCompleteWhereTheyAre: a host that joins has Ceph move what two others have.
func TestCopiesThatMoveAreCompleteWhereTheyAre(t *testing.T) {
	two, three := Pool{ID: 1, Name: "two", Size: 2, PGs: 1, Domain: DomainHost}, Pool{ID: 1, Name: "three", Size: 3, PGs: 1, Domain: DomainHost}
	for state, test := range map[string]struct {
		pool   Pool
		acting []int
		want   string
	}{
		"active+clean":                                    {two, []int{0, 1}, ""},
		"active+undersized+degraded":                      {three, []int{0, 1}, ""},
		"active+remapped+backfilling":                     {two, []int{0, 1}, ""},
		"active+remapped+backfill_wait":                   {two, []int{0, 1}, ""},
		"active+clean+remapped":                           {two, []int{0, 1}, ""},
		"active+undersized+degraded+remapped+backfilling": {three, []int{0, 1}, ""},
		"active+undersized+remapped+backfill_wait":        {three, []int{0, 2}, ""},
		"active+remapped+backfilling+scrubbing":           {two, []int{0, 3}, "has 1 of 2 copies"},
		"active+degraded+remapped+backfilling":            {two, []int{0, 1}, "is active+degraded"},
		"active+undersized+remapped+backfilling":          {two, []int{0, 1}, "is active+undersized"},
		"active+recovery_wait+remapped":                   {two, []int{0, 1}, "is active+recovery_wait"},
		"active+recovering+undersized+degraded+remapped":  {three, []int{0, 1}, "is active+recovering"},
		"active+remapped+backfill_toofull":                {two, []int{0, 1}, "toofull"},
		"active+remapped+inconsistent+backfilling":        {two, []int{0, 1}, "inconsistent"},
		"remapped+backfilling":                            {two, []int{0, 1}, "is remapped"},
		"remapped+peering":                                {two, []int{0, 1}, "is remapped+peering"},
		"undersized+degraded+remapped+backfilling+peered": {three, []int{0, 1}, "peered"},
		"active+backfilling":                              {two, []int{0, 1}, "is active+backfilling"},
		"active+remapped+backfilling+forced_backfill":     {two, []int{0, 1}, "forced"},
	} {
		got := WhyIncompleteServing(twoHosts(), []Pool{test.pool}, []PG{{ID: "1.0", Pool: 1, State: state, Acting: test.acting}}, 2)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: it says %q, want %q", state, got, test.want)
		}
	}
	parts := Pool{ID: 1, Name: "parts", Size: 2, PGs: 1, Erasure: true}
	if got := WhyIncompleteServing(twoHosts(), []Pool{parts}, []PG{{ID: "1.0", Pool: 1, State: "active+remapped+backfilling", Acting: []int{0, 1}}}, 2); got == "" {
		t.Error("of parts that move nothing is known, and they count as complete")
	}
}

// TestAPoolThatIsNotServedCanBeComplete: with fewer hosts than min_size Ceph serves none of it.
func TestAPoolThatIsNotServedCanBeComplete(t *testing.T) {
	mgr, other := Pool{ID: 1, Name: "mgr", Size: 3, MinSize: 3, PGs: 1, Domain: DomainHost}, Pool{ID: 2, Name: "other", Size: 3, MinSize: 3, PGs: 1, Domain: DomainHost}
	group := func(pool int, state string) PG { return PG{ID: "g", Pool: pool, State: state, Acting: []int{0, 1}} }
	for state, complete := range map[string]bool{
		"undersized+degraded+peered": true, "undersized+peered": true, "active+undersized": true,
		"peered": false, "undersized+degraded": false, "recovering+undersized+degraded+peered": false, "undersized+degraded+remapped+backfilling+peered": false,
	} {
		if got := WhyIncomplete(twoHosts(), []Pool{mgr}, []PG{group(1, state)}, 2, "mgr"); (got == "") != complete {
			t.Errorf("%s: it says %q", state, got)
		}
	}
	peered := group(2, "undersized+degraded+peered")
	if got := WhyIncomplete(twoHosts(), []Pool{mgr, other}, []PG{group(1, "active+undersized"), peered}, 2, "mgr"); !strings.Contains(got, "peered") {
		t.Errorf("of a pool that is to be served it says %q", got)
	}
	if got := WhyIncomplete(twoHosts(), []Pool{mgr}, []PG{group(1, "undersized+degraded+peered")}, 3, "mgr"); !strings.Contains(got, "has 2 of 3") {
		t.Errorf("of a copy that lacks it says %q", got)
	}
}

// TestWhatIsNotServedIsNothingToAddACopyTo, though its copies may be complete.
func TestWhatIsNotServedIsNothingToAddACopyTo(t *testing.T) {
	pool := Pool{ID: 1, Name: "a", Size: 3, MinSize: 3, PGs: 1, Domain: DomainHost}
	group := PG{ID: "1.0", Pool: 1, State: "undersized+degraded+peered", Acting: []int{0, 1}}
	if got := WhyIncompleteServing(twoHosts(), []Pool{pool}, []PG{group}, 2); !strings.Contains(got, "peered") {
		t.Errorf("it says %q", got)
	}
}

func TestAMuteDoesNotHideWhatIsLostOrFull(t *testing.T) {
	for _, code := range []string{
		"OBJECT_UNFOUND", "PG_DAMAGED", "OSD_SCRUB_ERRORS", "PG_AVAILABILITY", "PG_BACKFILL_FULL", "PG_RECOVERY_FULL",
		"OSD_FULL", "OSD_BACKFILLFULL", "OSD_NEARFULL", "POOL_FULL", "POOL_BACKFILLFULL", "POOL_NEARFULL",
	} {
		if (Check{Code: code, Severity: HealthWarn, Muted: true}).Harmless() {
			t.Errorf("%s is harmless when it is muted", code)
		}
	}
	for _, check := range []Check{{Code: "MGR_MODULE_ERROR", Severity: HealthErr, Muted: true}, {Code: "SOMETHING_NEW", Muted: true}, {Code: "MON_DOWN", Severity: HealthWarn}} {
		if !check.Harmless() {
			t.Errorf("%+v is not harmless", check)
		}
	}
	for _, check := range []Check{{Code: "MON_DOWN", Severity: HealthErr}, {Code: "SOMETHING_NEW", Severity: HealthWarn}} {
		if check.Harmless() {
			t.Errorf("%+v is harmless", check)
		}
	}
}

func TestWithAHostLostARealCephHasTwoCompleteCopies(t *testing.T) {
	pools, stuck := of(recordedPools(t), recordedPGs(t, "pg-dump-out"), 1)
	if got := WhyIncomplete(threeHosts(nil), pools, stuck, 2); got != "" {
		t.Errorf("it says %q", got)
	}
	if got := WhyIncomplete(threeHosts(nil), pools, stuck, 3); !strings.Contains(got, "has 2 of 3 copies") {
		t.Errorf("of three it says %q", got)
	}
}
