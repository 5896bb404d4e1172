package config

import "testing"

func TestWhatIsNoLimitOfNodesIsNotRead(t *testing.T) {
	for _, text := range []string{"", "%", "101%", "-1", "1.5", "many", "3 nodes"} {
		if got, err := parseMaxUnknown(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}
