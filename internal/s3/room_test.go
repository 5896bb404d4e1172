package s3_test

import (
	"fmt"
	"testing"

	"github.com/replicatedhq/ekco/internal/s3"
)

const gib = 1 << 30

// sixDrives are those of six servers called a to f, with as much free each.
func sixDrives(total, free uint64, device string) s3.Server {
	server := s3.Server{Parity: 3}
	for i := range 6 {
		server.Drives = append(server.Drives, s3.Drive{Host: string(rune('a' + i)), Works: true, Total: total, Free: free, Device: device})
	}
	return server
}

// pairs has each two of the servers share a machine.
func pairs(host string) string { return fmt.Sprint((host[0] - 'a') / 2) }

func alone(host string) string { return host }

func TestReplicasThatShareAFileSystemDivideIt(t *testing.T) {
	for name, test := range map[string]struct {
		server  s3.Server
		machine func(string) string
		want    uint64
	}{
		"each has its own":                        {sixDrives(100*gib, 70*gib, "8:1"), alone, 50 * 3 * gib},
		"two share one":                           {sixDrives(100*gib, 70*gib, "8:1"), pairs, 25 * 3 * gib},
		"two share one, and old servers":          {sixDrives(100*gib, 70*gib, ""), pairs, 25 * 3 * gib},
		"nobody knows where they are":             {sixDrives(100*gib, 80*gib, "8:1"), func(string) string { return "" }, 10 * 3 * gib},
		"what is left is the reserve":             {sixDrives(100*gib, 20*gib, "8:1"), alone, 0},
		"what is left is less than that":          {sixDrives(100*gib, 1*gib, "8:1"), alone, 0},
		"a server of one drive has no redundancy": {s3.Server{Drives: []s3.Drive{{Works: true, Total: 100 * gib, Free: 70 * gib}}}, alone, 50 * gib},
	} {
		if got := test.server.Room(test.machine); got != test.want {
			t.Errorf("%s: room for %d, want %d", name, got, test.want)
		}
	}
	volumes := sixDrives(100*gib, 70*gib, "")
	for i := range volumes.Drives {
		volumes.Drives[i].Device = fmt.Sprintf("8:%d", i)
	}
	if got := volumes.Room(pairs); got != 150*gib {
		t.Errorf("two volumes of their own on each machine: room for %d", got)
	}
	full, away := sixDrives(100*gib, 70*gib, "8:1"), sixDrives(100*gib, 70*gib, "8:1")
	full.Drives[4].Free = 30 * gib
	away.Drives[4] = s3.Drive{Host: "e"}
	if got := full.Room(alone); got != 30*gib {
		t.Errorf("the fullest drive decides: room for %d", got)
	}
	if got := away.Room(alone); got != 150*gib {
		t.Errorf("one that is away will have its part: room for %d", got)
	}
}

func TestWhatTinyObjectsTakeIsMoreThanTheirContent(t *testing.T) {
	server := sixDrives(100*gib, 70*gib, "8:1")
	if got := server.SpaceFor(1_000_000, 1_000_000); got < 20*gib || got > 30*gib {
		t.Errorf("a million versions of a byte take %d", got)
	}
	if got := server.SpaceFor(1, 10*gib); got < 10*gib || got > 11*gib {
		t.Errorf("one of 10 GiB takes %d", got)
	}
	// Of a store that has shrunk since, more was copied than there is.
	if got := server.SpaceFor(-5, -10); got != 0 {
		t.Errorf("less than nothing takes %d", got)
	}
}
