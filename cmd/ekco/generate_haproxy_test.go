package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// goldenHAProxy returns a file that a real HAProxy has judged, by test/loadbalancer.
func goldenHAProxy(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("../../internal/loadbalancer/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestTheConfigurationIsAllThatIsOnStandardOutput(t *testing.T) {
	d := newDesk(t, nil)
	for _, test := range []struct{ typed, want string }{
		{"--primary-host=10.128.0.3", "one.cfg"},
		{"--primary-host=10.128.0.5,10.128.0.3,10.128.0.4", "three.cfg"},
		{"--primary-host 10.128.0.5 --primary-host 10.128.0.3,10.128.0.4", "three.cfg"},
		{"--primary_host=10.128.0.5 --primary-host= --primary-host=10.128.0.3 --primary-host=10.128.0.4 --log_level=debug", "three.cfg"},
		{"--primary-host=fd00::3,fd00::4,10.128.0.3", "ipv6.cfg"},
		{"--primary-host=localhost,10.128.0.3", "names.cfg"},
	} {
		d.expect(d.types(append([]string{"generate-haproxy-config"}, strings.Fields(test.typed)...)...), exitDone, "", "")
		if d.out.String() != goldenHAProxy(t, test.want) || d.errOut.Len() != 0 {
			t.Errorf("%s: printed %s\nand said %s", test.typed, d.out, d.errOut)
		}
	}
}

func TestNoConfigurationIsPrintedForWhatIsNoListOfPrimaries(t *testing.T) {
	d := newDesk(t, nil)
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "give the primaries: --primary-host="},
		{[]string{"--primary-host="}, "give the primaries: --primary-host="},
		{[]string{"--primary-host"}, "flag needs an argument"},
		{[]string{"--primary-hosts=10.0.0.1"}, "did you mean --primary-host?"},
		{[]string{"--primary-host=10.0.0.1", "10.0.0.2"}, `takes no argument; it was given 1: "10.0.0.2"`},
		{[]string{"--primary-host=10.0.0.1,"}, `primary "" is neither an IP address nor the name of a host`},
		{[]string{"--primary-host=10.0.0.1, 10.0.0.2"}, `primary " 10.0.0.2" is neither`},
		{[]string{"--primary-host=10.0.0.1:6443"}, `primary "10.0.0.1:6443" is neither an IP address nor the name of a host, without a port`},
		{[]string{"--primary-host=10.0.0.1\n10.0.0.2"}, `primary "10.0.0.1\n10.0.0.2" is neither`},
		{[]string{`--primary-host="10.0.0.1"`}, `primary "\"10.0.0.1\"" is neither`},
		{[]string{"--primary-host=10.0.0.1", "--primary-host=a b,c d"}, "ekco: primary \"a b\""},
		{[]string{"--primary-host=10.0.0.1", "--primary-host=a b,c d"}, "\nekco: primary \"c d\""},
	} {
		d.expect(d.types(append([]string{"generate-haproxy-config"}, test.args...)...), exitUsage, "", test.want)
		if d.out.Len() != 0 {
			t.Errorf("%q: printed %s", test.args, d.out)
		}
	}
}

func TestAConfigurationThatCannotBePrintedIsAFailure(t *testing.T) {
	d := newDesk(t, nil)
	d.app.stdout = writerFunc(func([]byte) (int, error) { return 0, syscall.ENOSPC })
	d.expect(d.types("generate-haproxy-config", "--primary-host=10.0.0.1"), exitFailed, "", "no space left")
}

const ofHAProxy = "--image=haproxy:3.4.2-alpine3.24"

// TestTheManifestIsWrittenOnceAndReadableToAll is not parallel: there is one umask.
func TestTheManifestIsWrittenOnceAndReadableToAll(t *testing.T) {
	d := newDesk(t, nil)
	path := filepath.Join(d.dir, "kubernetes", "manifests", "haproxy.yaml")
	write := func() int { return d.types("generate-haproxy-manifest", "--file="+path, ofHAProxy) }
	before := syscall.Umask(0o027)
	code := write()
	syscall.Umask(before)
	d.expect(code, exitDone, "", path+" is written, with image haproxy:3.4.2-alpine3.24\n")
	content, err := os.ReadFile(path)
	if err != nil || string(content) != goldenHAProxy(t, "haproxy.yaml") || d.out.Len() != 0 {
		t.Errorf("%v: %s\nprinted %s", err, content, d.out)
	}
	for name, want := range map[string]fs.FileMode{path: 0o644, filepath.Dir(path): 0o755 | fs.ModeDir, filepath.Dir(filepath.Dir(path)): 0o755 | fs.ModeDir} {
		if info, err := os.Stat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, want %v", name, info, want)
		}
	}
	if err := os.Chtimes(path, noon, noon); err != nil {
		t.Fatal(err)
	}
	d.expect(write(), exitDone, "", path+" has image haproxy:3.4.2-alpine3.24 already, and was not changed\n")
	if got := changed(t, path); !got.Equal(noon) {
		t.Errorf("it was written again, at %v", got)
	}
	d.expect(d.types("generate-haproxy-manifest", "--file", path, "--image", "haproxy:3.4.3"), exitDone, "", "is written, with image haproxy:3.4.3")
	if got := changed(t, path); got.Equal(noon) {
		t.Error("it was not written with another image")
	}
}

func changed(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func TestTheManifestTakesTheFlagsOfEarlierInstallers(t *testing.T) {
	d := newDesk(t, nil)
	path := filepath.Join(d.dir, "haproxy")
	d.expect(d.types("generate-haproxy-manifest", "--file="+path, ofHAProxy, "--primary-host=10.0.0.1,10.0.0.2", "--primary-host", "a b"), exitDone, "",
		"ekco: --primary-host is ignored: the primaries are in HAProxy's configuration\n"+path+" is written")
	if d.out.Len() != 0 {
		t.Errorf("printed %s", d.out)
	}
	d.expect(d.types("generate-haproxy-manifest", "--help"), exitDone, `--file string    the manifest (default "/etc/kubernetes/manifests/haproxy")`, "")
	if strings.Contains(d.out.String(), "--primary-host") {
		t.Errorf("the help has what is without effect:\n%s", d.out)
	}
}

func TestAManifestThatMakesNoSenseIsNotWritten(t *testing.T) {
	d := newDesk(t, nil)
	path := filepath.Join(d.dir, "haproxy.yaml")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--file=" + path}, "give the image: --image=haproxy:lts-alpine"},
		{[]string{"--file=" + path, "--image="}, "give the image"},
		{[]string{"--file=" + path, "--image", "a\"\n  hostPID: true"}, `image "a\"\n  hostPID: true" is not valid`},
		{[]string{"--file=", ofHAProxy}, "give the file, or leave out --file"},
		{[]string{"--file=" + path, ofHAProxy, "haproxy"}, `takes no argument; it was given 1: "haproxy"`},
		{[]string{"--file=" + path, ofHAProxy, "--imag=x"}, "did you mean --image?"},
	} {
		d.expect(d.types(append([]string{"generate-haproxy-manifest"}, test.args...)...), exitUsage, "", test.want)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || d.out.Len() != 0 {
			t.Errorf("%q: %v, printed %s", test.args, err, d.out)
		}
	}
}

func TestWhatStandsInTheManifestsWayIsNamed(t *testing.T) {
	d := newDesk(t, nil)
	file := filepath.Join(d.dir, "etcd.yaml")
	if err := os.WriteFile(file, []byte("kind: Pod\nmetadata: {name: etcd}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:                                file + " is not HAProxy's manifest, so EKCO does not change it: it is the manifest of pod \"etcd\", not of haproxy; move it away",
		d.dir:                               d.dir + " is not a regular file",
		filepath.Join(file, "haproxy.yaml"): filepath.Join(file, "haproxy.yaml") + ": not a directory",
	} {
		d.expect(d.types("generate-haproxy-manifest", "--file="+path, ofHAProxy), exitFailed, "", want)
		if d.out.Len() != 0 {
			t.Errorf("%s: printed %s", path, d.out)
		}
	}
}

func TestWithoutTheRightToTheManifestItSaysToRunItAsRoot(t *testing.T) {
	d := newDesk(t, nil)
	path := filepath.Join(d.dir, "haproxy.yaml")
	if err := os.WriteFile(path, []byte(goldenHAProxy(t, "haproxy.yaml")), 0o644); err != nil {
		t.Fatal(err)
	}
	asNobody(t, d.dir, func() {
		d.expect(d.types("generate-haproxy-manifest", "--file="+path, ofHAProxy), exitFailed, "", path+": permission denied; run this as root")
		path := filepath.Join(d.dir, "new", "haproxy.yaml")
		d.expect(d.types("generate-haproxy-manifest", "--file="+path, ofHAProxy), exitFailed, "", "permission denied; run this as root")
	})
}

func TestTheShellIsOfferedNothingForPrimariesAndImages(t *testing.T) {
	d := newDesk(t, nil)
	for _, typed := range []string{"generate-haproxy-config --primary-host", "generate-haproxy-manifest --image"} {
		d.expect(d.types(append(append([]string{"__complete"}, strings.Fields(typed)...), "")...), exitDone, ":4\n", "")
		if d.out.String() != ":4\n" {
			t.Errorf("%s: %s", typed, d.out)
		}
	}
	// Files, as the shell does it.
	d.expect(d.types("__complete", "generate-haproxy-manifest", "--file", ""), exitDone, ":0\n", "")
}

// TestThePageOfTheLoadBalancerShowsWhatIsPrinted: each of its examples that needs no operator, typed.
func TestThePageOfTheLoadBalancerShowsWhatIsPrinted(t *testing.T) {
	d := newDesk(t, nil)
	blocks := strings.Split(pageOf(t, "load-balancer.md"), "```\n")
	if len(blocks) != 7 {
		t.Fatalf("the page has %d parts, want three examples and what is around them", len(blocks))
	}
	line, printed, _ := strings.Cut(blocks[1], "\n…\n")
	typed, isEkco := strings.CutPrefix(line, "$ ekco ")
	d.expect(d.types(strings.Fields(typed)...), exitDone, printed, "")
	if !isEkco || !strings.HasSuffix(d.out.String(), printed) {
		t.Errorf("%q prints\n%s\nand the page has\n%s", line, d.out, printed)
	}
	path := filepath.Join(d.dir, "haproxy.yaml")
	line, said, _ := strings.Cut(strings.ReplaceAll(blocks[3], "/etc/kubernetes/manifests/haproxy.yaml", path), "\n")
	typed, _ = strings.CutPrefix(line, "$ ekco ")
	if code := d.types(strings.Fields(typed)...); code != exitDone || d.errOut.String() != said {
		t.Errorf("%q says %q, and the page has %q", line, d.errOut, said)
	}
}
