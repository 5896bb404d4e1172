package ceph

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// placement is the failure domain and the device class of a CRUSH rule.
type placement struct{ domain, class string }

// joinPools returns the pools with the placement of their rules.
func joinPools(pools map[int]Pool, ruleOf map[int]int, rules map[int]placement) []Pool {
	joined := make([]Pool, 0, len(pools))
	for id, pool := range pools {
		rule := rules[ruleOf[id]]
		pool.Domain, pool.DeviceClass = rule.domain, rule.class
		joined = append(joined, pool)
	}
	slices.SortFunc(joined, func(a, b Pool) int { return a.ID - b.ID })
	return joined
}

// dumpedPools are the pools in the OSD map, by id, and their CRUSH rules.
type dumpedPools struct {
	pools  map[int]Pool
	ruleOf map[int]int
}

// erasureCoded is the number of this pool type in Ceph.
const erasureCoded = 3

// parsePools reads the pools from the answer of `ceph osd dump`.
func parsePools(answer []byte) (dumpedPools, error) {
	var parsed struct {
		Pools *[]struct {
			Pool      int    `json:"pool"`
			Name      string `json:"pool_name"`
			Type      int    `json:"type"`
			Size      int    `json:"size"`
			MinSize   int    `json:"min_size"`
			PGNum     int    `json:"pg_num"`
			CrushRule int    `json:"crush_rule"`
			Options   struct {
				PGMin int `json:"pg_num_min"`
			} `json:"options"`
		} `json:"pools"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return dumpedPools{}, err
	}
	if parsed.Pools == nil {
		return dumpedPools{}, fmt.Errorf("the answer has no pools")
	}
	dumped := dumpedPools{pools: make(map[int]Pool), ruleOf: make(map[int]int)}
	for _, p := range *parsed.Pools {
		dumped.pools[p.Pool] = Pool{
			ID: p.Pool, Name: p.Name, Size: p.Size, MinSize: p.MinSize, PGs: p.PGNum, PGMin: p.Options.PGMin, Erasure: p.Type == erasureCoded,
		}
		dumped.ruleOf[p.Pool] = p.CrushRule
	}
	return dumped, nil
}

// ruleStep is one step of a CRUSH rule.
type ruleStep struct {
	Op       string `json:"op"`
	Num      int    `json:"num"`
	Type     string `json:"type"`
	ItemName string `json:"item_name"`
}

// parseRules returns the placement of each rule, by its id, from the answer of `ceph osd crush rule dump`.
func parseRules(answer []byte) (map[int]placement, error) {
	var parsed []struct {
		ID    int        `json:"rule_id"`
		Steps []ruleStep `json:"steps"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		return nil, err
	}
	rules := make(map[int]placement, len(parsed))
	for _, rule := range parsed {
		rules[rule.ID] = placementOf(rule.Steps)
	}
	return rules, nil
}

// placementOf reads a rule that takes one root and chooses once, one place for each copy. For any other rule it
// returns an empty placement.
func placementOf(steps []ruleStep) (p placement) {
	takes, chooses := 0, 0
	for _, step := range steps {
		switch {
		case step.Op == "take":
			takes++
			_, p.class, _ = strings.Cut(step.ItemName, "~")
		case strings.HasPrefix(step.Op, "choose"):
			chooses++
			p.domain = step.Type
			leaves := strings.HasPrefix(step.Op, "chooseleaf") || step.Type == DomainOSD
			if step.Num != 0 || !leaves {
				return placement{}
			}
		}
	}
	if takes != 1 || chooses != 1 {
		return placement{}
	}
	return p
}

// noOSD is Ceph's placeholder for a missing OSD in a list of OSDs.
const noOSD = math.MaxInt32

// parsePGs reads the answer of `ceph pg dump pgs_brief`.
func parsePGs(answer []byte) ([]PG, error) {
	type brief struct {
		PGID   string `json:"pgid"`
		State  string `json:"state"`
		Acting []int  `json:"acting"`
	}
	var parsed struct {
		Ready *bool   `json:"pg_ready"`
		Stats []brief `json:"pg_stats"`
	}
	if err := json.Unmarshal(answer, &parsed); err != nil {
		// Before Nautilus the answer was only the list.
		if json.Unmarshal(answer, &parsed.Stats) != nil {
			return nil, err
		}
	}
	if parsed.Ready != nil && !*parsed.Ready {
		return nil, fmt.Errorf("the mgr does not know all placement groups yet: %w", ErrAgain)
	}
	pgs := make([]PG, 0, len(parsed.Stats))
	for _, pg := range parsed.Stats {
		pool, _, _ := strings.Cut(pg.PGID, ".")
		id, err := strconv.Atoi(pool)
		if err != nil {
			return nil, fmt.Errorf("%q is not a placement group", pg.PGID)
		}
		acting := slices.DeleteFunc(pg.Acting, func(osd int) bool { return osd == noOSD })
		pgs = append(pgs, PG{ID: pg.PGID, Pool: id, State: pg.State, Acting: acting})
	}
	slices.SortFunc(pgs, func(a, b PG) int { return strings.Compare(a.ID, b.ID) })
	return pgs, nil
}
