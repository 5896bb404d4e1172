package rookpods_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/replicatedhq/ekco/internal/kube"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/internal/rook"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
	"github.com/replicatedhq/ekco/observers/rookpods"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watching runs a test with all sources. known is what the journal has.
func watching(t *testing.T, off string, known map[journal.Subject]journal.RookPodsFacts, test func(*observerstest.Bench, *kubesim.Objects)) {
	objects := kubesim.NewObjects()
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			return rookpods.New(rookpods.Options{
				Pods: rook.NewPods(objects), Filesystem: "rook-shared-fs", CSIOff: off, MDSOff: off, PriorityOff: off,
				Known: func(kinds ...string) map[journal.Subject]journal.RookPodsFacts {
					of := map[journal.Subject]journal.RookPodsFacts{}
					for subject, facts := range known {
						if strings.Contains(strings.Join(kinds, " "), subject.Kind) {
							of[subject] = facts
						}
					}
					return of
				},
			})
		}
	}, func(b *observerstest.Bench) { test(b, objects) })
}

var (
	mds    = journal.RookMDS("rook-shared-fs")
	config = journal.RookOperatorConfig
	osd    = journal.RookWorkload(journal.KindDeployment, "rook-ceph-osd-0")
)

// wrote expects what was written of things, in any order: each source has a pace of its own.
func wrote(b *observerstest.Bench, want ...string) {
	b.Helper()
	got := b.Paper.Things()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		b.Errorf("written is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func install(objects *kubesim.Objects) {
	objects.Put(rook.OperatorRef(), `{"spec":{"template":{"spec":{"containers":[{"image":"rook/ceph:v1.10.0"}]}}}}`)
	objects.Put(rook.ResourceRef(journal.RookCluster), `{"spec":{}}`)
	objects.Put(rook.PodsRef(config), `{"data":{}}`)
	objects.Put(rook.PodsRef(mds), `{"spec":{}}`)
	objects.Put(rook.PodsRef(osd), `{"metadata":{"labels":{"app":"rook-ceph-osd"}},"spec":{"template":{"spec":{}}}}`)
}

func TestEachIsReadOnceAPollAndOnlyWhatChangedIsWritten(t *testing.T) {
	watching(t, "", nil, func(b *observerstest.Bench, objects *kubesim.Objects) {
		b.Pass(time.Hour)
		b.WroteThings()
		if n := b.Logged("EKCO does not observe it"); n != 2 {
			b.Errorf("absence was said %d times:\n%s", n, b.Said)
		}
		install(objects)
		b.Pass(2 * time.Minute)
		wrote(b,
			`CephMDS rook-ceph/rook-ceph-mds-rook-shared-fs mds-of-uid-rook-shared-fs-4 {"generation":1}`,
			`ConfigMap rook-ceph/rook-ceph-operator-config uid-rook-ceph-operator-config-3 {"version":"v1.10.0","differing":["`+strings.Join(rook.CSIKeys(), `","`)+`"]}`,
			`Deployment rook-ceph/rook-ceph-osd-0 uid-rook-ceph-osd-0-5 {"generation":1,"daemon":"osd"}`,
		)
		reads := map[string]int{}
		calls := []string{"get cephclusters", "get cephfilesystems", "get configmaps", "list deployments", "get daemonsets"}
		for _, call := range calls {
			reads[call] = objects.Calls(call)
		}
		b.Pass(10 * time.Minute)
		b.WroteThings()
		for _, call := range calls {
			most := 11
			if call == "get cephclusters" {
				most = 20
			}
			if n := objects.Calls(call) - reads[call]; n > most {
				b.Errorf("in ten minutes %d calls: %s", n, call)
			}
		}
		objects.Put(kube.Ref{Version: "v1", Resource: "pods", Namespace: rook.Namespace, Name: "mds-a"},
			`{"metadata":{"labels":{"app":"rook-ceph-mds","rook_file_system":"rook-shared-fs"}},"spec":{"nodeName":"n1"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
		objects.Edit(rook.PodsRef(osd), func(object map[string]any) {
			object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"priorityClassName": "mine"}}}
		})
		b.Pass(70 * time.Second)
		wrote(b, `CephMDS rook-ceph/rook-ceph-mds-rook-shared-fs mds-of-uid-rook-shared-fs-4 {"generation":1,"hosts":["n1"]}`,
			`Deployment rook-ceph/rook-ceph-osd-0 uid-rook-ceph-osd-0-5 {"generation":2,"daemon":"osd","priority":"mine"}`)
	})
}

func TestWhenRookIsRemovedAllOfItIsGoneOnce(t *testing.T) {
	watching(t, "", nil, func(b *observerstest.Bench, objects *kubesim.Objects) {
		install(objects)
		b.Pass(2 * time.Minute)
		if things := b.Paper.Things(); len(things) != 3 {
			b.Fatalf("known are %q", things)
		}
		objects.Remove(rook.ResourceRef(journal.RookCluster)) // what else there is may stay for long
		b.Pass(2 * time.Minute)
		if things := b.Paper.Things(); len(things) != 3 || !strings.Contains(strings.Join(things, " "), "gone: deleted") {
			b.Errorf("told is %q", things)
		}
		b.Pass(time.Hour)
		b.WroteThings()
	})
}

func TestOneThatMayNotBeReadKeepsNothingFromTheOthers(t *testing.T) {
	watching(t, "", nil, func(b *observerstest.Bench, objects *kubesim.Objects) {
		install(objects)
		objects.Forbid("get configmaps")
		objects.Forbid("list deployments")
		b.Pass(2 * time.Minute)
		wrote(b, `CephMDS rook-ceph/rook-ceph-mds-rook-shared-fs mds-of-uid-rook-shared-fs-4 {"generation":1}`)
	})
}

func TestSwitchedOffNothingIsAskedAndWhatIsKnownEnds(t *testing.T) {
	known := map[journal.Subject]journal.RookPodsFacts{config: {UID: "c"}, mds: {UID: "m"}, osd: {UID: "o"}}
	watching(t, "it is off", known, func(b *observerstest.Bench, objects *kubesim.Objects) {
		install(objects)
		b.Pass(time.Minute)
		wrote(b, "CephMDS rook-ceph/rook-ceph-mds-rook-shared-fs m gone: it is off", "ConfigMap rook-ceph/rook-ceph-operator-config c gone: it is off",
			"Deployment rook-ceph/rook-ceph-osd-0 o gone: it is off")
		b.Pass(time.Hour)
		b.WroteThings()
		if n := objects.Calls("get cephclusters") + objects.Calls("list deployments") + objects.Calls("get configmaps"); n != 0 {
			b.Errorf("%d calls", n)
		}
	})
}
