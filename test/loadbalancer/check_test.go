package loadbalancertest_test

import (
	"context"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/loadbalancer"
	loadbalancertest "github.com/replicatedhq/ekco/test/loadbalancer"
)

// TestHAProxyTakesEveryGoldenConfiguration: what the tests of internal/loadbalancer and cmd/ekco
// generate is what is in these files.
func TestHAProxyTakesEveryGoldenConfiguration(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../internal/loadbalancer/testdata/*.cfg")
	if err != nil || len(files) < 4 {
		t.Fatalf("there are %q (%v)", files, err)
	}
	for _, file := range files {
		config, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, haproxy := range haproxies {
			if err := haproxy.Check(t.Context(), string(config)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// TestHAProxyTakesEveryPrimaryOfTheTests, also names that nobody resolves.
func TestHAProxyTakesEveryPrimaryOfTheTests(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../internal/loadbalancer/testdata/primaries.txt")
	if err != nil {
		t.Fatal(err)
	}
	var primaries []string
	for line := range strings.Lines(string(content)) {
		if primary, _, _ := strings.Cut(line, " "); primary != "#" {
			primaries = append(primaries, primary)
		}
	}
	config, err := loadbalancer.Config(primaries)
	if err != nil || len(primaries) < 10 {
		t.Fatalf("%v of %q", err, primaries)
	}
	for _, haproxy := range haproxies {
		if output, err := start(t.Context(), haproxy, config); err != nil {
			t.Errorf("HAProxy %s: %v: %s", haproxy.Version, err, output)
		}
	}
}

// TestHAProxyTakesAnyPrimaries has many, of all kinds, and those at the edges of what is taken.
func TestHAProxyTakesAnyPrimaries(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var many []string
	for range 300 {
		var four [4]byte
		var sixteen [16]byte
		for i := range sixteen {
			sixteen[i] = byte(random.Uint32() >> random.IntN(9) & 0xff)
		}
		copy(four[:], sixteen[:])
		four[0], sixteen[0] = four[0]%223+1, 0xfd
		many = append(many, netip.AddrFrom4(four).String(), netip.AddrFrom16(sixteen).String())
	}
	for name, primaries := range map[string][]string{
		"many":      many,
		"loopback":  {"127.0.0.1", "::1", "localhost"},
		"short":     {"fd00::", "1::", "[::2]", "::ffff:10.0.0.1", "::10.0.0.1", "2001:db8:0:1:1:1:1:1", "64:ff9b::192.0.2.33"},
		"broadcast": {"255.255.255.255", "1.0.0.0"},
		"twice":     {"10.0.0.1", "10.0.0.1"},
	} {
		config, err := loadbalancer.Config(primaries)
		if err != nil {
			t.Fatal(err)
		}
		for _, haproxy := range haproxies {
			if err := haproxy.Check(t.Context(), config); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestANameThatNobodyResolvesKeepsHAProxyFromNothing: it is a warning of 2.6, and a note of 3.0.
func TestANameThatNobodyResolvesKeepsHAProxyFromNothing(t *testing.T) {
	t.Parallel()
	names := []string{"nowhere.invalid", strings.Repeat(strings.Repeat("a", 61)+".", 4) + "invalid"[:4]}
	config, err := loadbalancer.Config(append(names, "10.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, haproxy := range haproxies {
		if output, err := start(t.Context(), haproxy, config); err != nil || strings.Count(output, "could not resolve address") != len(names) {
			t.Errorf("HAProxy %s: %v: %s", haproxy.Version, err, output)
		}
		without := strings.ReplaceAll(config, " init-addr libc,none", "")
		if output, err := start(t.Context(), haproxy, without); err == nil {
			t.Errorf("HAProxy %s takes it without init-addr too: %s", haproxy.Version, output)
		}
	}
}

// start has HAProxy judge whether it would start.
func start(ctx context.Context, haproxy loadbalancertest.HAProxy, config string) (string, error) {
	check := exec.CommandContext(ctx, haproxy.Path, "-c", "-f", "/dev/stdin")
	check.Stdin = strings.NewReader(config)
	output, err := check.CombinedOutput()
	return string(output), err
}

func TestTheJudgesSeeWhatIsWrong(t *testing.T) {
	t.Parallel()
	config, err := loadbalancer.Config([]string{"10.0.0.1", "fd00::1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, haproxy := range haproxies {
		for right, wrong := range map[string]string{
			"mode tcp": "mode udp", "default_backend kubernetes-primaries-": "default_backend kubernetes-", "[fd00::1]:6443": "[fd00::1]:x",
			"balance roundrobin": "balance fair", "0.0.0.0:6444": "0.0.0.0",
			// These are warnings.
			"    timeout connect 10s\n": "",
		} {
			if err := haproxy.Check(t.Context(), strings.Replace(config, right, wrong, 1)); err == nil {
				t.Errorf("HAProxy %s takes %q in place of %q", haproxy.Version, wrong, right)
			}
		}
	}
}
