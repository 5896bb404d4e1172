package minio

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/replicatedhq/ekco/actions"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/journal/words"
)

// hasRoom compares the size of the rest of the copy with the free space of the disks. The size of a local volume does
// not limit its use.
func (m *migrator) hasRoom(ctx context.Context, record journal.ActionRecord) actions.Verdict {
	if record.Request.DryRun || record.HasForced(MinioRoom, keyRoom) {
		return actions.Pass() // EKCO surveyed nothing, or a person forced it
	}
	all, err := outputOf[journal.MinioPrepared](record, journal.StepPrepareMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	done, err := outputOf[journal.MinioCopied](record, journal.StepCopyMinio)
	if err != nil {
		return actions.Hold(err.Error()).About("outputs")
	}
	both, err := m.open(ctx, record)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	defer both.close()
	lacks, err := m.lacksRoom(ctx, both, all, done)
	if err != nil {
		return actions.Hold(err.Error()).About("unread")
	}
	if lacks == "" {
		return actions.Pass()
	}
	return actions.Hold(fmt.Sprintf("%s; enlarge its volumes or the nodes' disks, or, if they can grow, continue with \"ekco retry --force %s\"", lacks, record.ID)).About(keyRoom)
}

// lacksRoom returns a text with the missing space for the rest of the copy, or "" if the rest fits. EKCO copies buckets
// and keys in order. So data that an earlier migration copied is among the first items, and is not copied again.
func (m *migrator) lacksRoom(ctx context.Context, both sides, all journal.MinioPrepared, done journal.MinioCopied) (string, error) {
	server, err := both.target.Server(ctx)
	if err != nil {
		return "", err
	}
	live, err := m.api.Read(ctx)
	if err != nil {
		return "", err
	}
	need := server.SpaceFor(all.Versions-max(done.Versions, all.ThereVersions), all.Bytes-max(done.Bytes, all.ThereBytes))
	free := server.Room(nodeOfServer(live.Pods))
	if need <= free {
		return "", nil
	}
	return fmt.Sprintf("ha-minio has room for %s, but the rest of the copy takes %s; a fifth of each file system must stay free, and replicas on a node share its disk",
		formatBytes(free), formatBytes(need)), nil
}

// nodeOfServer returns a function that names the node of a server of the highly available MinIO. All servers without a
// known node count as one node.
func nodeOfServer(pods []journal.MinioPod) func(host string) string {
	nodes := make(map[string]string, len(pods))
	for _, pod := range pods {
		nodes[pod.Name] = pod.Node
	}
	return func(host string) string {
		if net.ParseIP(host) != nil {
			return ""
		}
		pod, _, _ := strings.Cut(host, ".")
		return nodes[pod]
	}
}

// roomInterval is how often EKCO checks the free space during a copy, because other programs write to the same disks.
const roomInterval = time.Minute

// noRoomError ends a copy that would fill the disks of the nodes.
type noRoomError struct{ lacks string }

func (e noRoomError) Error() string { return e.lacks }

// formatBytes formats a number of bytes for persons.
func formatBytes(bytes uint64) string {
	if bytes < 1<<20 {
		return words.Count(bytes, "byte")
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
}
