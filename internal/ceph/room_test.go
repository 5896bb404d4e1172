package ceph

import (
	"fmt"
	"strings"
	"testing"
)

func TestTheRoomOfARealCephIsRead(t *testing.T) {
	s := &script{t: t, answers: map[string]answer{
		"osd dump": {stdout: string(recorded(t, "osd-dump-pools"))},
		"osd df":   {stdout: string(recorded(t, "osd-df"))},
		"df":       {stdout: string(recorded(t, "df"))},
	}}
	room, err := New(s, Options{}).Room(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if room.Nearfull < 0.84 || room.Nearfull > 0.86 || len(room.Capacity) != 4 || room.Capacity[12] != 256<<20 || room.Used != 2380<<10 {
		t.Errorf("read %+v", room)
	}
	if pool := room.Pools["replicapool"]; pool != (Stored{Data: 1 << 20, Raw: 1 << 20}) {
		t.Errorf("the pool is %+v", pool)
	}
}

func TestAnAnswerThatDoesNotSayTheRoomIsAnError(t *testing.T) {
	whole := map[string]string{"osd dump": `{"nearfull_ratio":0.85}`, "osd df": `{"nodes":[]}`, "df": `{"pools":[]}`}
	for command, said := range map[string]string{"osd dump": `{}`, "osd df": `{}`, "df": `{"pools":[{"name":"p","stats":{}}]}`} {
		s := &script{t: t, answers: map[string]answer{}}
		for name, text := range whole {
			s.answers[name] = answer{stdout: text}
		}
		s.answers[command] = answer{stdout: said}
		if _, err := New(s, Options{}).Room(t.Context()); err == nil || !strings.Contains(err.Error(), "ceph "+command) {
			t.Errorf("%s says %s: %v", command, said, err)
		}
	}
}

// roomy is a tree with one OSD for each size, on a host of its own, and its room.
func roomy(used int64, gib ...int64) (Tree, Room) {
	tree, room := Tree{}, Room{Nearfull: 0.5, Capacity: map[int]int64{}, Used: used << 30, Pools: map[string]Stored{}}
	for id, size := range gib {
		tree.OSDs = append(tree.OSDs, OSD{Ref: Ref{ID: id}, Host: fmt.Sprint("h", id), Exists: true, Up: true, Reweight: 1, Weight: 1})
		room.Capacity[id] = size << 30
	}
	return tree, room
}

func TestCopiesNeedRoomOnDifferentHosts(t *testing.T) {
	for name, test := range map[string]struct {
		used   int64
		gib    []int64
		copies int
		lacks  string
	}{
		"enough":                {10, []int64{100, 100, 100}, 3, ""},
		"to the brim":           {50, []int64{100, 100, 100}, 3, ""},
		"too much in all":       {61, []int64{100, 100, 100}, 3, "all data would need 151 GiB, but the OSDs have 150 GiB below the nearfull ratio of 0.50"},
		"a host that is small":  {10, []int64{500, 500, 10}, 3, "copies of 45 GiB on different hosts would need 135 GiB, but the hosts have 95 GiB"},
		"two, and a small host": {10, []int64{500, 500, 10}, 2, ""},
		"no OSD":                {0, nil, 2, "all data would need 90 GiB, but the OSDs have 0 B"},
	} {
		t.Run(name, func(t *testing.T) {
			tree, room := roomy(test.used, test.gib...)
			room.Pools["p"] = Stored{Data: 45 << 30, Raw: 45 << 30}
			if test.gib == nil {
				room.Pools["p"] = Stored{Data: 45 << 30}
			}
			got := room.Lacks(tree, map[string]int{"p": test.copies, "unknown": 3})
			if (test.lacks == "") != (got == "") || !strings.Contains(got, test.lacks) {
				t.Errorf("lacking is %q, want %q", got, test.lacks)
			}
		})
	}
}

// TestWhatDoesNotServeIsNoRoom: CRUSH puts nothing there.
func TestWhatDoesNotServeIsNoRoom(t *testing.T) {
	tree, room := roomy(0, 100, 100)
	room.Pools["p"] = Stored{Data: 40 << 30}
	if got := room.Lacks(tree, map[string]int{"p": 2}); got != "" {
		t.Fatal(got)
	}
	for name, change := range map[string]func(*OSD){
		"down": func(o *OSD) { o.Up = false }, "out": func(o *OSD) { o.Reweight = 0 }, "without weight": func(o *OSD) { o.Weight = 0 },
	} {
		osd := tree.OSDs[1]
		change(&tree.OSDs[1])
		if room.Lacks(tree, map[string]int{"p": 2}) == "" {
			t.Errorf("a host %s is room", name)
		}
		tree.OSDs[1] = osd
	}
}

// TestWhatTakesLessThanNowFreesNoRoomForOthers: as what was deleted and is not cleared away yet.
func TestWhatTakesLessThanNowFreesNoRoomForOthers(t *testing.T) {
	tree, room := roomy(140, 100, 100, 100)
	room.Pools["grows"], room.Pools["shrunk"] = Stored{Data: 20 << 30, Raw: 20 << 30}, Stored{Data: 1 << 30, Raw: 60 << 30}
	if lacks := room.Lacks(tree, map[string]int{"grows": 2, "shrunk": 2}); !strings.Contains(lacks, "all data") {
		t.Errorf("it says %q", lacks)
	}
}
