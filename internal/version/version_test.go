package version

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheVersionIsAboveTheOneItReplaces(t *testing.T) {
	var major, minor, patch int
	if _, err := fmt.Sscanf(Get().Version, "v%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatalf("version %q is not vX.Y.Z: %v", Get().Version, err)
	}
	if major == 0 && (minor < 28 || minor == 28 && patch <= 14) {
		t.Errorf("version is %s, want one above v0.28.14", Get().Version)
	}
}

func TestTheVersionLineNamesTheCommitOnlyIfItIsKnown(t *testing.T) {
	known := Info{Version: "v1.2.3", GitSHA: "abc", Go: "go1.26", Platform: "linux/amd64"}.String()
	if want := "EKCO v1.2.3 (commit abc, go1.26, linux/amd64)"; known != want {
		t.Errorf("got %q, want %q", known, want)
	}
	if unknown := (Info{Version: "v1.2.3"}).String(); strings.Contains(unknown, "commit") {
		t.Errorf("got %q, want no word of a commit", unknown)
	}
}
