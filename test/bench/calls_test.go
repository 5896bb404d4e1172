package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cephProcesses is the record of the ceph processes that were run in the tools
// pod, from the start of each that has its command as an argument to its end.
type cephProcesses struct {
	// Program is what the control plane runs for an exec into a pod.
	Program string
	// conf names the ceph.conf of the cluster to ask; it may be made later.
	conf, record string
}

func newCephProcesses(b *testing.B) *cephProcesses {
	b.Helper()
	dir := b.TempDir()
	p := &cephProcesses{Program: filepath.Join(dir, "exec"), conf: filepath.Join(dir, "ceph.conf"), record: filepath.Join(dir, "record")}
	// bash knows the time without another process.
	// A process that reads questions waits for more of them, and is on record from its
	// start on.
	script := fmt.Sprintf(`#!/bin/bash
began=$EPOCHREALTIME
export CEPH_CONF=%[1]s
case "$*" in *" -f json")
	echo "$began $began $*" >>%[2]s
	exec "$@"
esac
"$@"
code=$?
echo "$began $EPOCHREALTIME $*" >>%[2]s
exit $code
`, p.conf, p.record)
	for path, content := range map[string]string{p.Program: script, p.record: ""} {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	return p
}

// conversation stands for a process that reads questions from its input.
const conversation = "(questions)"

// use makes a cluster the one that is asked.
func (p *cephProcesses) use(b *testing.B, conf string) {
	b.Helper()
	if err := os.Symlink(conf, p.conf); err != nil {
		b.Fatal(err)
	}
}

func (p *cephProcesses) all(b *testing.B) (calls []interval) {
	b.Helper()
	content, err := os.ReadFile(p.record)
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		_, command, found := strings.Cut(fields[2], "-f json")
		if !found {
			b.Fatalf("not a command of EKCO's: %s", line)
		}
		if command = strings.TrimSpace(command); command == "" {
			command = conversation
		}
		calls = append(calls, interval{command, seconds(b, fields[0]), seconds(b, fields[1])})
	}
	return calls
}

// seconds reads what bash says of the time, which has microseconds.
func seconds(b *testing.B, text string) time.Time {
	b.Helper()
	microseconds, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.UnixMicro(microseconds)
}

// loggedCalls are the calls of the clients of ceph and etcd, as the operator's
// log has them at level debug.
type loggedCalls struct{ ceph, etcd []interval }

func readLoggedCalls(b *testing.B, log string) (calls loggedCalls) {
	b.Helper()
	for line := range strings.Lines(log) {
		var entry struct {
			Time      time.Time
			Msg, Call string
			Took      time.Duration
		}
		if !strings.Contains(line, `"asked `) {
			continue
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			b.Fatalf("read %q: %v", line, err)
		}
		call := interval{entry.Call, entry.Time.Add(-entry.Took), entry.Time}
		switch entry.Msg {
		case "asked ceph":
			calls.ceph = append(calls.ceph, call)
		case "asked etcd":
			calls.etcd = append(calls.etcd, call)
		}
	}
	return calls
}
