package ceph

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// manyOSDs is what ceph says of 500 OSDs on 250 hosts, with what it says of each besides.
func manyOSDs() map[string]answer {
	const hosts, each = 250, 2
	var tree, dump []string
	for h := range hosts {
		tree = append(tree, fmt.Sprintf(`{"id":%d,"name":"node-%d","type":"host","type_id":1,"pool_weights":{},"children":[%d,%d]}`, -h-2, h, h*each, h*each+1))
		for id := h * each; id < h*each+each; id++ {
			tree = append(tree, fmt.Sprintf(`{"id":%d,"device_class":"hdd","name":"osd.%d","type":"osd","type_id":0,"crush_weight":1,"depth":2,"pool_weights":{},"exists":1,"status":"up","reweight":1,"primary_affinity":1}`, id, id))
			dump = append(dump, fmt.Sprintf(`{"osd":%d,"uuid":"00000000-0000-4000-8000-%012d","up":1,"in":1,"public_addrs":{"addrvec":[%s]}}`, id, id,
				strings.Repeat(`{"type":"v2","addr":"10.0.0.1:6800","nonce":1},`, 20)+`{"type":"v1","addr":"10.0.0.1:6801","nonce":1}`))
		}
	}
	return map[string]answer{
		"osd tree": {stdout: `{"nodes":[` + strings.Join(tree, ",") + `],"stray":[]}`},
		"osd dump": {stdout: `{"fsid":"f","nearfull_ratio":0.85,"pools":[],"osds":[` + strings.Join(dump, ",") + `]}`},
	}
}

// EKCO has 100 MiB, so neither the result nor reading it may take much memory.
func TestOfFiveHundredOSDsLittleIsKept(t *testing.T) {
	client := New(&script{t: t, answers: manyOSDs()}, Options{})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tree, err := client.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 2<<20 {
		t.Errorf("%d KiB are kept", kept>>10)
	}
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 32<<20 {
		t.Errorf("%d MiB were taken on the way", taken>>20)
	}
	if n := len(tree.Serving()); n != 250 || len(tree.OSDs) != 500 {
		t.Errorf("%d hosts, %d OSDs", n, len(tree.OSDs))
	}
	t.Logf("%d KiB were taken", (after.TotalAlloc-before.TotalAlloc)>>10)
}
