package main

import (
	"testing"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/internal/config"
)

// TestSwitchedOffTheDatabaseHasASourceThatSaysSo: what the journal knows of it would stay
// in the status for ever.
func TestSwitchedOffTheDatabaseHasASourceThatSaysSo(t *testing.T) {
	capability := kotsadmOf(cluster{cfg: config.Default()})
	sources := capability.Sources(fsm.NewState(capability.Fsm))
	if len(sources) != 1 || sources[0].Name() != "StatefulSet default/kotsadm-rqlite" {
		t.Errorf("the sources are %v", sources)
	}
}
