package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// manyOSDs stands for a Ceph with more OSDs than fit on one machine: a program for the tools pod
// that answers what EKCO asks with the answers of a real Ceph of four OSDs, whose OSDs are there
// so many times. It changes nothing, and knows no other command.
type manyOSDs struct {
	// Program is what the control plane runs for an exec into a pod.
	Program string
	dir     string
	// tree and dump are the answers about OSDs; one and host are an OSD and a host of the tree,
	// entry is an OSD of the dump.
	tree, dump, one, host, entry map[string]any
	next                         int
}

// newManyOSDs returns the Ceph with that many hosts of two OSDs each.
func newManyOSDs(b *testing.B, hosts []string) *manyOSDs {
	b.Helper()
	m := &manyOSDs{dir: b.TempDir()}
	m.Program = filepath.Join(m.dir, "exec")
	m.tree, m.dump = m.recorded(b, "osd-tree-ok"), m.recorded(b, "osd-dump")
	for _, each := range m.tree["nodes"].([]any) {
		node := each.(map[string]any)
		switch node["type"] {
		case "host":
			m.host = node
		case "osd":
			m.one = node
		}
	}
	m.entry = m.dump["osds"].([]any)[0].(map[string]any)
	m.tree["nodes"], m.dump["osds"], m.dump["pools"] = []any{map[string]any{"id": -1, "name": "default", "type": "root", "type_id": 11, "children": []any{}}}, []any{}, []any{}
	for _, host := range hosts {
		m.add(host, 2)
	}
	m.write(b)
	for _, name := range []string{"status", "version"} {
		answer := name
		if name == "status" {
			answer += "-ok"
		}
		m.put(b, name, m.recorded(b, answer))
	}
	m.put(b, "osd-crush-rule-dump", []any{}) // of no pool
	script := fmt.Sprintf(`#!/bin/bash
cd %s
answer() {
	echo "$EPOCHREALTIME $1" >>record
	if ! cat "${1// /-}.json"; then
		echo "Error EINVAL: only what is asked at rest is answered" >&2
		exit 22
	fi
	echo
}
all="$*"
command="${all##*-f json}"
if [ -n "$command" ]; then
	answer "${command# }"
	exit
fi
while read -r question; do answer "$question"; done
`, m.dir)
	for path, content := range map[string]string{m.Program: script, m.path("record"): ""} {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

func (m *manyOSDs) path(name string) string { return filepath.Join(m.dir, name) }

// recorded is an answer of a real Ceph.
func (m *manyOSDs) recorded(b *testing.B, name string) (answer map[string]any) {
	b.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "testdata", "ceph", name+".json"))
	if err == nil {
		err = json.Unmarshal(content, &answer)
	}
	if err != nil {
		b.Fatal(err)
	}
	return answer
}

// add adds a host.
func (m *manyOSDs) add(host string, osds int) {
	nodes := m.tree["nodes"].([]any)
	id := -1 - len(nodes)
	with := func(of, changes map[string]any) map[string]any {
		copied := map[string]any{}
		for key, value := range of {
			copied[key] = value
		}
		for key, value := range changes {
			copied[key] = value
		}
		return copied
	}
	var children []any
	for range osds {
		children = append(children, m.next)
		nodes = append(nodes, with(m.one, map[string]any{"id": m.next, "name": fmt.Sprintf("osd.%d", m.next)}))
		m.dump["osds"] = append(m.dump["osds"].([]any), with(m.entry, map[string]any{"osd": m.next, "uuid": fmt.Sprintf("00000000-0000-4000-8000-%012d", m.next)}))
		m.next++
	}
	root := nodes[0].(map[string]any)
	root["children"] = append(root["children"].([]any), id)
	m.tree["nodes"] = append(nodes, with(m.host, map[string]any{"id": id, "name": host, "children": children}))
}

// write has the answers be about what there is now.
func (m *manyOSDs) write(b *testing.B) {
	b.Helper()
	m.put(b, "osd-tree", m.tree)
	m.put(b, "osd-dump", m.dump)
}

func (m *manyOSDs) put(b *testing.B, name string, answer any) {
	b.Helper()
	text, err := json.Marshal(answer)
	if err == nil {
		err = os.WriteFile(m.path("new"), text, 0o600)
	}
	if err == nil {
		err = os.Rename(m.path("new"), m.path(name+".json"))
	}
	if err != nil {
		b.Fatal(err)
	}
}

// asked returns when each question was put, by what it is.
func (m *manyOSDs) asked(b *testing.B, since time.Time) map[string][]time.Time {
	b.Helper()
	content, err := os.ReadFile(m.path("record"))
	if err != nil {
		b.Fatal(err)
	}
	asked := map[string][]time.Time{}
	for line := range strings.Lines(string(content)) {
		at, question, _ := strings.Cut(strings.TrimSpace(line), " ")
		if when := seconds(b, at); when.After(since) {
			asked[question] = append(asked[question], when)
		}
	}
	return asked
}
