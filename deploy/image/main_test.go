package main

import (
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/deploy/image/internal/program"
)

func TestParseRefusesWhatCannotBeReproduced(t *testing.T) {
	good := []string{"--version", "v1.2.3", "--commit", "0123456789ab", "--epoch", "1790000000", "--out", "x", "--base", "amd64=/base"}
	if o, err := parse(good); err != nil || o.bases["amd64"] != "/base" || o.created.Unix() != 1_790_000_000 {
		t.Fatalf("got %+v, %v", o, err)
	}
	for _, test := range []struct {
		more []string
		want string
	}{
		{[]string{"--version", "1.2.3"}, "is not like v0.29.0"},
		{[]string{"--version", "v1.2.3 -X main.evil=1"}, "is not like v0.29.0"},
		{[]string{"--commit", ""}, "set GIT_SHA and SOURCE_DATE_EPOCH"},
		{[]string{"--epoch", "0"}, "set GIT_SHA and SOURCE_DATE_EPOCH"},
		{[]string{"--out", ""}, "--out and --base are needed"},
		{[]string{"--base", "amd64"}, "want architecture=directory"},
	} {
		if _, err := parse(append(good, test.more...)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q", test.more, err, test.want)
		}
	}
}

func TestTheProgramCanBeRunAndItsLicencesAreRead(t *testing.T) {
	module := program.Module{Path: "example.org/x", Licences: map[string][]byte{"LICENSE": []byte("MIT")}}
	tree := ekcoLayer(program.Program{Content: []byte("ekco"), Modules: []program.Module{module}}, []byte("list"))
	for name, mode := range map[string]int64{programPath: 0o755, sbomPath: 0o644, licencesPath + "/example.org/x/LICENSE": 0o644} {
		if file, there := tree[name]; !there || file.Mode != mode || len(file.Content) == 0 {
			t.Errorf("%s is there: %t, %+v", name, there, file)
		}
	}
}
