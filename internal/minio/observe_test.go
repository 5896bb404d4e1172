package minio_test

import (
	"testing"

	"github.com/replicatedhq/ekco/internal/minio/miniosim"
	"github.com/replicatedhq/ekco/journal"
)

func TestTheHealthThatIsObservedIsWhatAnyReplicaSaysOfAll(t *testing.T) {
	m, client := installed()
	is := func(want journal.MinioHealth) {
		t.Helper()
		if facts, err := client.Observe(t.Context()); err != nil || facts.Health != want {
			t.Errorf("%v: it is %q, want %q", err, facts.Health, want)
		}
	}
	is("")
	for i := range 6 {
		m.Run(i, miniosim.Pod{Node: "a"})
	}
	is(journal.MinioHealthy)
	m.Heal(3)
	is(journal.MinioRestores)
	m.Heal()
	for i := range 6 {
		m.Silence(i, true)
		switch {
		case i < 2:
			is(journal.MinioHealthy)
		case i < 5:
			is(journal.MinioUnhealthy)
		default:
			is(journal.MinioSilent)
		}
	}
}
