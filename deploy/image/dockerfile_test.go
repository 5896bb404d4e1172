package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// instructions returns the arguments of an instruction in the Dockerfile's last
// stage, with the variables that a build gives.
func instructions(t *testing.T, name string) (arguments []string) {
	t.Helper()
	content, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, last, found := strings.Cut(string(content), "\nFROM scratch\n")
	if !found {
		t.Fatal("the Dockerfile has no stage from scratch")
	}
	given := strings.NewReplacer("$VERSION", "v1.2.3", "$GIT_SHA", "0123456789ab")
	for line := range strings.Lines(last) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			arguments = append(arguments, given.Replace(strings.TrimSpace(rest)))
		}
	}
	return arguments
}

func TestTheDockerfileSaysWhatTheImageSays(t *testing.T) {
	want := config("v1.2.3", "0123456789ab")
	if got := instructions(t, "ENV"); !slices.Equal(got, want.Env) {
		t.Errorf("ENV %q, want %q", got, want.Env)
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(want.Labels)) {
		labels = append(labels, key+"="+want.Labels[key])
	}
	if got := slices.Sorted(slices.Values(instructions(t, "LABEL"))); !slices.Equal(got, labels) {
		t.Errorf("LABEL %q, want %q", got, labels)
	}
	var entrypoint []string
	if err := json.Unmarshal([]byte(strings.Join(instructions(t, "ENTRYPOINT"), "")), &entrypoint); err != nil || !slices.Equal(entrypoint, want.Entrypoint) {
		t.Errorf("ENTRYPOINT %q, %v, want %q", entrypoint, err, want.Entrypoint)
	}
	if user, dir := instructions(t, "USER"), instructions(t, "WORKDIR"); !slices.Equal(user, []string{want.User}) || !slices.Equal(dir, []string{want.WorkingDir}) {
		t.Errorf("USER %q, WORKDIR %q, want %q and %q", user, dir, want.User, want.WorkingDir)
	}
}
