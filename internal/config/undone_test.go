package config

import (
	"os"
	"strings"
	"testing"
)

func TestWhatKURLSwitchesOnAndIsNotDoneIsOneSentenceThatNamesIt(t *testing.T) {
	content, err := os.ReadFile("testdata/kurl.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config, err := load(t, "config.yaml", string(content), map[string]string{
		"ROOK_MINIMUM_NODE_COUNT": "3", "ENABLE_HA_MINIO": "true", "ENABLE_HA_KOTSADM": "true",
		"ENABLE_INTERNAL_LOAD_BALANCER": "true", "RESTART_FAILED_ENVOY_PODS": "true",
	})
	if err != nil {
		t.Fatal(err)
	}
	said := config.Undone()
	for _, want := range []string{
		"cannot yet create a Ceph cluster",
		"(pod_image_overrides)",
		"(rook_minimum_node_count)",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("does not say %q: %s", want, said)
		}
	}
	if strings.ContainsAny(said, "\n") || strings.Contains(said, config.StorageMigrationAuthToken) || strings.Contains(said, "maintain_rook") {
		t.Errorf("says too much: %s", said)
	}
}

func TestWhatIsSwitchedOffIsNotCalledUndone(t *testing.T) {
	config := Default()
	if got := config.Undone(); got != "" {
		t.Errorf("by default it says %q", got)
	}
	config.RookMinimumNodeCount = 3
	if got, want := config.Undone(), "this version cannot yet create a Ceph cluster (rook_minimum_node_count)"; got != want {
		t.Errorf("by default it says %q, want %q", got, want)
	}
	config.RotateCerts, config.RookMinimumNodeCount = false, 2
	if got := config.Undone(); got != "" {
		t.Errorf("with all switched off it says %q", got)
	}
}

func TestEverySwitchWithoutEffectSaysWhatIsNotDone(t *testing.T) {
	for _, k := range new(Config).keys() {
		_, isSwitch := k.value.(*bool)
		if isSwitch && !k.built && k.does == "" {
			t.Errorf("%s has no effect, and nothing says what is not done", k.name)
		}
		if k.built && k.does != "" || !k.built && k.lacks != "" {
			t.Errorf("%s is said both to have an effect and to have none", k.name)
		}
	}
}
