package kotsadm_test

import (
	"testing"
	"time"

	"github.com/replicatedhq/ekco/actions/kotsadm"
	"github.com/replicatedhq/ekco/internal/kube/kubesim"
	"github.com/replicatedhq/ekco/journal"
	"github.com/replicatedhq/ekco/observers"
	"github.com/replicatedhq/ekco/observers/observerstest"
)

const single = `{"spec":{"replicas":1,"template":{"spec":{"containers":[{"image":"rqlite:8","args":["-bootstrap-expect=1"]}]}}}}`

func TestTheStatefulSetIsReadByNameAndOnlyWhatIsAskedOfItIsAFact(t *testing.T) {
	objects := kubesim.NewObjects()
	known := map[string]journal.KotsadmFacts{"default/kotsadm-rqlite": {UID: "uid-old", Generation: 4, Replicas: 3}}
	observerstest.Watching(t, func(b *observerstest.Bench, _ *observers.Options) {
		b.Sources = func() []observers.Source {
			is := kotsadm.Object(objects)
			return observers.PollEach([]journal.Subject{journal.KotsadmDatabase}, is.Read,
				observers.PolledOne[journal.KotsadmFacts]{Machine: "kotsadm", UID: is.UID, Known: known})
		}
	}, func(b *observerstest.Bench) {
		b.WroteThings("StatefulSet default/kotsadm-rqlite uid-old gone: absent at start")
		b.Pass(time.Hour)
		b.WroteThings()
		if n := b.Logged("EKCO does not observe it"); n != 1 {
			t.Errorf("absence was said %d times:\n%s", n, b.Said)
		}
		objects.Put(kotsadm.Ref, single)
		b.Pass(70 * time.Second)
		b.WroteThings(`StatefulSet default/kotsadm-rqlite uid-kotsadm-rqlite-1 {"generation":1,"replicas":1,"expect":"1","image":"rqlite:8"}`)
		objects.Edit(kotsadm.Ref, func(object map[string]any) { object["status"] = map[string]any{"readyReplicas": 1} })
		b.Pass(time.Hour)
		b.WroteThings()
	})
}
