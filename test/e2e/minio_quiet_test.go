package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/fsm/minio"
	"github.com/replicatedhq/ekco/test/await"
)

// quietWithoutMinio: only the real program shows that EKCO requests and logs nothing about MinIO if MinIO
// does not exist, if the annotation with its number of replicas is missing, or if the setting is off.
func quietWithoutMinio(m *minioCluster) {
	t, c, g := m.t, m.c, m.g
	on := map[string]string{"enable_ha_minio": "true", "minio_namespace": minioNamespace, "reconcile_interval": "200ms"}
	var unwanted *hold // of what EKCO asks for that shall not look
	for _, test := range []struct {
		name string
		keys map[string]string
		// polls is what it asks for now and then.
		polls   string
		prepare func()
	}{
		{"without the StatefulSet", on, "/statefulsets/ha-minio", func() {}},
		{"without the annotation", on, "/statefulsets/ha-minio", func() {
			c.kubectl("apply", "-f", c.minioManifest())
			c.kubectl("annotate", "statefulset", "ha-minio", "-n", minioNamespace, "kurl.sh/desired-scale-")
		}},
		{"without the namespace's name", map[string]string{"enable_ha_minio": "true", "reconcile_interval": "200ms"}, "/monitoring.coreos.com/", func() {
			c.kubectl("annotate", "statefulset", "ha-minio", "-n", minioNamespace, "kurl.sh/desired-scale=6")
			unwanted = g.holdAll(asksFor("minio"))
		}},
		{"switched off", map[string]string{"minio_namespace": minioNamespace, "enable_ha_minio": "false", "reconcile_interval": "200ms"}, "/monitoring.coreos.com/", func() {}},
	} {
		test.prepare()
		o := newOperator(t, m.kubeconfig, test.keys)
		p := o.startReady()
		for range 3 {
			asked := g.holdNth(0, false, asksFor(test.polls))
			asked.await(t)
			asked.pass()
		}
		if unwanted != nil {
			select {
			case <-unwanted.reached:
				t.Errorf("%s: EKCO asks for MinIO", test.name)
			default:
			}
		}
		if events := o.events("--component", minio.Machine); len(events) != 0 {
			t.Errorf("%s: %d events", test.name, len(events))
		}
		if said := slices.DeleteFunc(strings.Split(p.Output.String(), "\n"), func(line string) bool {
			return !strings.Contains(line, "MinIO minio/") && !strings.Contains(line, "ha-minio") || strings.Contains(line, `"level":"DEBUG"`)
		}); len(said) > 1 || strings.Contains(fmt.Sprint(said), `"level":"WARN"`) || strings.Contains(fmt.Sprint(said), `"level":"ERROR"`) {
			t.Errorf("%s: the log says %q", test.name, said)
		}
		if absent := fmt.Sprint(o.status().Absent); strings.Contains(strings.ToLower(absent), "minio") {
			t.Errorf("%s: status lists %s", test.name, absent)
		}
		p.Stop(await.HangTimeout)
	}
	unwanted.pass()
}

// asksFor matches a request with that in its path.
func asksFor(part string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == http.MethodGet && strings.Contains(r.URL.Path, part) }
}
