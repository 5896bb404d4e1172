package fsm

import (
	"slices"
	"strings"
	"testing"
)

func TestNothingIsComparedWithWhatIsTooLongForAName(t *testing.T) {
	compared := false
	Near(strings.Repeat("x", 1<<20), func(func(string) bool) { compared = true })
	if compared {
		t.Error("a name of 1 MiB is compared with all others, which the loop has no time for")
	}
}

// The status shows names without their kinds.
func TestANameWithoutItsKindIsNear(t *testing.T) {
	known := []string{"lamp/hall/7", "lamp/hall/17", "node/worker-2"}
	if near := Near("Hall/7", slices.Values(known)); !slices.Equal(near, []string{"lamp/hall/7"}) {
		t.Errorf("near to hall/7 are %q", near)
	}
}

func TestANameThatIsKnownTwiceIsSuggestedOnce(t *testing.T) {
	known := []string{"purge-w1-28", "clear-w1-7", "purge-w1-28"}
	if near := Near("purge-w1-29", slices.Values(known)); !slices.Equal(near, []string{"purge-w1-28"}) {
		t.Errorf("near are %q", near)
	}
}
