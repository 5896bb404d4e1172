package ceph

import (
	"slices"
	"testing"
)

// TestOnlyOSDsThatAreUpAndInMakeAHost: also those of ids of two digits, and one host is one
// however many it has.
func TestOnlyOSDsThatAreUpAndInMakeAHost(t *testing.T) {
	osd := func(id int, host string, change func(*OSD)) OSD {
		of := OSD{Ref: Ref{ID: id}, Host: host, Exists: true, Up: true, Reweight: 1, Weight: 1}
		if change != nil {
			change(&of)
		}
		return of
	}
	tree := Tree{OSDs: []OSD{
		osd(0, "b", nil), osd(1, "down", func(o *OSD) { o.Up = false }), osd(2, "out", func(o *OSD) { o.Reweight = 0 }),
		osd(3, "b", nil), osd(4, "", nil), osd(5, "stray", func(o *OSD) { o.Stray = true }),
		osd(6, "removed", func(o *OSD) { o.Exists = false }), osd(7, "half", func(o *OSD) { o.Reweight = 0.5 }),
		osd(8, "a", func(o *OSD) { o.Up = false }), osd(123, "a", nil),
		osd(9, "empty", func(o *OSD) { o.Weight = 0 }),
	}}
	if got := tree.Serving(); !slices.Equal(got, []string{"a", "b", "half"}) {
		t.Errorf("hosts %q", got)
	}
	if got := tree.HostsWithOSDs(); !slices.Equal(got, []string{"a", "b", "down", "empty", "half", "out"}) {
		t.Errorf("hosts with OSDs %q", got)
	}
	recorded, err := parseTree(recorded(t, "osd-tree-host-down"))
	if err != nil {
		t.Fatal(err)
	}
	if got := recorded.Serving(); !slices.Equal(got, []string{"node1", "node3-example-com", "node4"}) {
		t.Errorf("of the recorded tree, hosts %q", got)
	}
}
