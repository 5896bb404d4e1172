package minio

import (
	"slices"
	"testing"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

func TestTheDetailsAreReplicasByNodeAndHealth(t *testing.T) {
	w := newWorld(t, 3)
	facts := installed(2, 6)
	facts.Health = journal.MinioRestores
	facts.Pods = []journal.MinioPod{
		{Name: "ha-minio-0", UID: "0", Node: "n1", State: journal.MinioPodRuns},
		{Name: "ha-minio-1", UID: "1", Node: "n0", State: journal.MinioPodEnds},
		{Name: "ha-minio-2", UID: "2", Node: "n1", State: journal.MinioPodRuns},
		{Name: "ha-minio-3", UID: "3", State: journal.MinioPodLacksVolume},
	}
	w.observe(facts)
	thing := w.S.Things[fsm.Key(minio)]
	want := []string{
		"Service minio selects minio; 2 of 6 replicas run, and it should have 6", "standalone MinIO (Deployment minio) exists",
		"ha-minio is healthy, and restores the data of a new volume", "n1: 0, 2", "n0: 1 (ends)", "no node: 3 (lacks its volume)",
	}
	if got := thing.Details(fsm.NewWorld(w.S, w.P, w.Now)); !slices.Equal(got, want) {
		t.Errorf("details are %q", got)
	}
	w.Gone(Machine, minio, "enable_ha_minio is off")
	if got := thing.Details(fsm.NewWorld(w.S, w.P, w.Now)); got != nil {
		t.Errorf("of what is gone it says %q", got)
	}
}

func TestAReplicaWaitsForItsVolumeAsLongAsConfigured(t *testing.T) {
	for _, test := range []struct {
		policy any
		want   string
	}{{nil, "5m0s"}, {Policy{}, "5m0s"}, {Policy{VolumeWait: 1e9}, "1s"}} {
		if got := volumeWait(test.policy).String(); got != test.want {
			t.Errorf("%+v: %s", test.policy, got)
		}
	}
}
