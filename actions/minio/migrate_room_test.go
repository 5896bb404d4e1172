package minio

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/s3"
	"github.com/replicatedhq/ekco/internal/s3/s3sim"
	"github.com/replicatedhq/ekco/journal"
)

// roomy is a store that says how it is.
type roomy struct {
	plainStore
	server s3.Server
}

func (r roomy) Server(context.Context) (s3.Server, error) { return r.server, nil }

// placed tells where the replicas are.
type placed struct {
	minio.API
	pods []journal.MinioPod
}

func (p placed) Read(context.Context) (journal.MinioFacts, error) {
	return journal.MinioFacts{Pods: p.pods}, nil
}

// TestRoomIsForWhatIsLeftToCopy: what an earlier copy left counts as done, and drives share what a node has.
// Of four drives two hold redundancy, and a version takes 16 KiB beside its content.
func TestRoomIsForWhatIsLeftToCopy(t *testing.T) {
	const kib, mib = int64(1 << 10), int64(1 << 20)
	for _, test := range []struct {
		name        string
		all         journal.MinioPrepared
		done        journal.MinioCopied
		free        int64
		nodes, host string
		lacks       string
	}{
		{name: "it just fits", all: journal.MinioPrepared{Versions: 64, Bytes: 3 * mib}, free: 2 * mib, nodes: "abcd"},
		{name: "a version is too much", all: journal.MinioPrepared{Versions: 65, Bytes: 3 * mib}, free: 2 * mib, nodes: "abcd", lacks: "has room for 4.0 MiB"},
		{name: "a byte is too much", all: journal.MinioPrepared{Versions: 64, Bytes: 3*mib + 1}, free: 2 * mib, nodes: "abcd", lacks: "the rest of the copy takes 4.0 MiB"},
		{name: "a part is done", all: journal.MinioPrepared{Versions: 164, Bytes: 13 * mib}, done: journal.MinioCopied{Versions: 100, Bytes: 10 * mib}, free: 2 * mib, nodes: "abcd"},
		{name: "more was there", all: journal.MinioPrepared{Versions: 164, Bytes: 13 * mib, ThereVersions: 100, ThereBytes: 10 * mib}, done: journal.MinioCopied{Versions: 1, Bytes: kib}, free: 2 * mib, nodes: "abcd"},
		{name: "two share a node", all: journal.MinioPrepared{Bytes: 3 * mib}, free: 2 * mib, nodes: "aabc", lacks: "has room for 2.0 MiB"},
		{name: "nobody knows where they are", all: journal.MinioPrepared{Bytes: 2 * mib}, free: 2 * mib, nodes: "abcd", host: "10.0.0.%d", lacks: "has room for 1.0 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			const total = 100 << 20
			var server s3.Server
			server.Parity = 2
			var pods []journal.MinioPod
			for i, node := range test.nodes {
				pod := fmt.Sprintf("ha-minio-%d", i)
				pods = append(pods, journal.MinioPod{Name: pod, Node: string(node)})
				host := pod + ".ha-minio.minio.svc"
				if test.host != "" {
					host = fmt.Sprintf(test.host, i)
				}
				server.Drives = append(server.Drives, s3.Drive{Host: host, Works: true, Total: total, Free: uint64(total/5 + test.free)})
			}
			m := &migrator{api: placed{pods: pods}}
			both := sides{target: &fencedStore{Store: roomy{plainStore{s3sim.New()}, server}}}
			lacks, err := m.lacksRoom(t.Context(), both, test.all, test.done)
			if err != nil || (lacks == "") != (test.lacks == "") || !strings.Contains(lacks, test.lacks) {
				t.Errorf("%v, it lacks %q, want %q", err, lacks, test.lacks)
			}
		})
	}
}
