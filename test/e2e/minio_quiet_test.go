package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/fsm/minio"
)

// testWithoutMinIOOrWithoutTheWishForItEKCOIsQuiet: with nothing of it, with kURL's, of which
// nobody says how many replicas it shall have, and with all of it and the switch off.
func testWithoutMinIOOrWithoutTheWishForItEKCOIsQuiet(t *testing.T) {
	c, g, _ := installGated(t, nil)
	c.kubectl("create", "namespace", minioNamespace)
	c.applyShipped("rbac-minio.yaml")
	kubeconfig := c.kubeconfigFor("kurl/ekco", g)
	on := map[string]string{"enable_ha_minio": "true", "minio_namespace": minioNamespace}
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
			c.applyMinio()
			c.kubectl("annotate", "statefulset", "ha-minio", "-n", minioNamespace, "kurl.sh/desired-scale-")
		}},
		{"without the namespace's name", map[string]string{"enable_ha_minio": "true"}, "/monitoring.coreos.com/", func() {
			c.kubectl("annotate", "statefulset", "ha-minio", "-n", minioNamespace, "kurl.sh/desired-scale=6")
			unwanted = g.holdAll(asksFor("minio"))
		}},
		{"switched off", map[string]string{"minio_namespace": minioNamespace, "enable_ha_minio": "false"}, "/monitoring.coreos.com/", func() {}},
	} {
		test.prepare()
		o := newOperator(t, kubeconfig, test.keys)
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
		p.Stop(grace)
	}
}

// asksFor matches a request with that in its path.
func asksFor(part string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == http.MethodGet && strings.Contains(r.URL.Path, part) }
}
