package ring

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/replicatedhq/ekco/internal/ceph/cephsim"
)

// A large cluster: each of manyHosts among manyNodes has two OSDs.
const (
	manyNodes = 1000
	manyHosts = 250
)

// fill has the nodes join, and OSDs run on the first of them.
func fill(e *estate, ceph *cephsim.Cluster) {
	names := make([]string, manyNodes)
	for i := range names {
		names[i] = fmt.Sprintf("n%04d", i)
	}
	e.join(names...)
	for i := range manyHosts {
		ceph.AddHost(names[i], 10+2*i, 11+2*i)
		e.server.Put(osdPod(names[i], 10+2*i))
		e.server.Put(osdPod(names[i], 11+2*i))
	}
}

// TestAThousandNodesAndFiveHundredOSDsRest: nothing is written, to the API or to the journal, and
// Ceph is asked once a minute at most; but at once when there is another OSD.
func TestAThousandNodesAndFiveHundredOSDsRest(t *testing.T) {
	inRook(t, func(e *estate, ceph *cephsim.Cluster) {
		fill(e, ceph)
		in := e.live(nil)
		e.takes(10*time.Minute, func() bool {
			asked := e.asksRook()
			return strings.HasSuffix(asked, "copies 3 3 3, mons 3, mgrs 2") && strings.Count(asked, " n0") == manyNodes
		})
		pass(5 * time.Minute)
		if n := len(e.changes()); n > 8 { // the nodes, the daemons, and three numbers, a copy at a time
			t.Errorf("it took %d changes", n)
		}

		events, changes, looks := e.state().Seq, len(e.changes()), ceph.Calls("Tree")
		const rest = 10
		pass(rest * time.Minute)
		if n, m := e.state().Seq-events, len(e.changes())-changes; n != 0 || m != 0 {
			t.Errorf("at rest %d events and %d changes:\n%s", n, m, e.history("table"))
		}
		for _, question := range []string{"Tree", "Health", "Pools", "Version"} {
			if n := ceph.Calls(question); question == "Tree" && n == looks || n > looks+rest {
				t.Errorf("in %d minutes Ceph was asked %s %d times, and %d times before", rest, question, n, looks)
			}
		}

		looks = ceph.Calls("Tree")
		ceph.AddHost("n0999", 2000)
		e.server.Put(osdPod("n0999", 2000))
		took := e.takes(5*time.Second, func() bool { return ceph.Calls("Tree") > looks })
		e.takes(time.Second, func() bool { return strings.Contains(e.history("json"), `"n0999"`) })
		t.Logf("Ceph is asked %s after there is another OSD", took)
		if err := in.stop(); err != nil {
			t.Error(err)
		}
	})
}
