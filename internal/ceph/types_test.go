package ceph_test

import (
	"testing"

	"github.com/replicatedhq/ekco/internal/ceph"
)

func TestAPlacementGroupCountsAsInactiveUnlessAnOSDServesIt(t *testing.T) {
	health := ceph.Health{PGs: map[string]int{
		"active+clean": 5, "active+undersized+degraded": 3, "active+recovering": 1,
		"unknown": 2, "down": 4, "stale+active+clean": 8, "incomplete": 16, "activating": 32,
	}}
	if got := health.Inactive(); got != 62 {
		t.Errorf("%d are inactive, want 62", got)
	}
}
