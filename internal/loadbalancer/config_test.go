package loadbalancer

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// golden compares with a file in testdata, of which test/loadbalancer asks a real HAProxy
// what it makes of it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

func TestTheConfigurationOf(t *testing.T) {
	for name, primaries := range map[string][]string{
		"one":   {"10.128.0.3"},
		"three": {"10.128.0.5", "10.128.0.3", "10.128.0.4"},
		"ipv6":  {"fd00:0:0::3", "[fd00::4]", "10.128.0.3"},
		"names": {"localhost", "10.128.0.3"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Config(primaries)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".cfg", got)
		})
	}
}

func TestEachConfigurationHasABackendOfItsOwn(t *testing.T) {
	seen := map[string][]string{}
	for _, primaries := range [][]string{{"10.0.0.1"}, {"10.0.0.2"}, {"10.0.0.1", "10.0.0.2"}, {"10.0.0.2", "10.0.0.1"}, {"fd00::1"}} {
		config, err := Config(primaries)
		if err != nil {
			t.Fatal(err)
		}
		name := Backend(config)
		if !regexp.MustCompile(`^kubernetes-primaries-[0-9a-f]{10}$`).MatchString(name) || !strings.Contains(config, "\nbackend "+name+"\n") || seen[name] != nil {
			t.Errorf("%q and %q have backend %q", primaries, seen[name], name)
		}
		seen[name] = primaries
	}
}

func TestServersOf(t *testing.T) {
	content, err := os.ReadFile("testdata/primaries.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		primary, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		if primary == "#" {
			continue
		}
		got, err := Config([]string{primary})
		if err != nil || !strings.Contains(got, "    server k8s-primary-0 "+want+" weight 1 ") {
			t.Errorf("%q: %v: %s", primary, err, got)
		}
	}
}

func TestWhatIsNoPrimaryIsNamed(t *testing.T) {
	long := strings.Repeat("a", 64)
	wrong := []string{
		"", " ", " 10.0.0.1", "10.0.0.1\n", "10.0.0.1\n    server evil 10.6.6.6:6443", "10.0.0.1 backup", "p1\r", "p1\x00", "p1#", "p1\\", `"p1"`, "$P1", "p1,p2",
		"10.0.0.1:6443", "p1:6443", "[fd00::1]:6443", "https://p1", "10.0.0.0/24",
		// The C library takes these for addresses: 10.0.0.0, 10.0.0.1 and 127.0.0.1.
		"10", "10.1", "0x7f000001", "0x7f.0X1", "010.0.0.1", "10.0.0.256", "1.0x",
		"[10.0.0.1]", "[fd00::1", "fd00::1]", "[[fd00::1]]", "[p1]", "fd00:::1", "fe80::1%eth0", "fe80::1%\n", "::ffff:10.0.0.1%eth0",
		"0.0.0.0", "::", "[::]", "224.0.0.1", "ff02::1", "::ffff:0.0.0.0",
		"-p1", "p1-", "p_1", "p1.", ".p1", "p..1", "*", "ümlaut", "unix@/run/x", "ipv4@10.0.0.1", long, strings.Repeat("a.", 126) + "ab",
	}
	for _, primary := range wrong {
		got, err := Config([]string{"10.0.0.1", primary})
		if err == nil || got != "" || !strings.Contains(err.Error(), fmt.Sprintf("primary %q ", primary)) {
			t.Errorf("%q: %v: %s", primary, err, got)
		}
	}
	_, err := Config([]string{"a b", "10.0.0.1", "c d"})
	if err == nil || !strings.Contains(err.Error(), `"a b"`) || !strings.Contains(err.Error(), `"c d"`) {
		t.Errorf("of two wrong ones it says %v", err)
	}
}

func TestAListWithoutPrimariesIsAnError(t *testing.T) {
	for _, none := range [][]string{nil, {}} {
		if got, err := Config(none); !errors.Is(err, ErrNoPrimaries) || got != "" {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// written is every line that differs with the primaries.
var written = regexp.MustCompile(`^    (bind \[::\]:6444 v6only|server k8s-primary-[0-9]+ (\[[0-9a-f:.]+\]|[A-Za-z0-9.-]+):6443 weight 1 verify none check check-ssl inter 1s fall 2 rise 3( init-addr libc,none)?)$`)

// FuzzNoPrimarySmugglesALine: with whatever primaries, the configuration has the lines that it
// has for any, in their order, and one server for each.
func FuzzNoPrimarySmugglesALine(f *testing.F) {
	for _, seed := range []string{"10.0.0.1", "fd00::1", "p1", "10.0.0.1\n    server evil 10.6.6.6:6443", "fe80::1%\n    bind *:1", "a,b\x00c", "[::1]", "p1 backup", "p1#"} {
		f.Add(seed, "10.0.0.2")
		f.Add("10.0.0.2", seed)
	}
	always, err := Config([]string{"10.0.0.1"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		primaries := []string{a, b}
		got, err := Config(primaries)
		if err != nil {
			if got != "" {
				t.Errorf("%q: an error and a configuration", primaries)
			}
			return
		}
		if diff := cmp.Diff(fixed(always), fixed(got)); diff != "" {
			t.Errorf("%q: %s", primaries, diff)
		}
		if strings.Count(got, "\n    server ") != 2 || strings.Count(got, Backend(got)+"\n") != 2 {
			t.Errorf("%q: %s", primaries, got)
		}
	})
}

func fixed(config string) []string {
	config = strings.ReplaceAll(config, Backend(config)+"\n", backend+"\n")
	return slices.DeleteFunc(strings.Split(config, "\n"), written.MatchString)
}

// ExampleConfig has the part that differs with the primaries.
func ExampleConfig() {
	text, err := Config([]string{"10.128.0.3", "fd00::4"})
	if err != nil {
		fmt.Println(err)
	}
	for line := range strings.Lines(text) {
		if strings.Contains(line, "bind ") || strings.Contains(line, "k8s-primary") {
			fmt.Println(strings.TrimSpace(line))
		}
	}
	// Output:
	// bind 0.0.0.0:6444
	// bind [::]:6444 v6only
	// server k8s-primary-0 10.128.0.3:6443 weight 1 verify none check check-ssl inter 1s fall 2 rise 3
	// server k8s-primary-1 [fd00::4]:6443 weight 1 verify none check check-ssl inter 1s fall 2 rise 3
}
