package fsm

import (
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
