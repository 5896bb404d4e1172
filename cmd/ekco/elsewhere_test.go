package main

import (
	"fmt"
	"log/slog"
	"testing"
)

func TestACommandWithoutOperatorIsRefusedIfOneMayRunElsewhere(t *testing.T) {
	const mirrorPath = "/api/v1/namespaces/kurl/configmaps/ekco-journal"
	const deploymentPath = "/apis/apps/v1/namespaces/kurl/deployments/ekc-operator"
	mirrored := func(content string) map[string]string {
		return map[string]string{mirrorPath: fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ekco-journal"},"data":{"actions.json":%q}}`, content)}
	}
	ready := func(replicas int) map[string]string {
		return map[string]string{deploymentPath: fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"ekc-operator"},"status":{"readyReplicas":%d}}`, replicas)}
	}
	for name, test := range map[string]struct {
		objects     map[string]string
		own, faulty string
		refused     bool
	}{
		"no EKCO has run here":              {},
		"its own mirror":                    {objects: mirrored(`{"format":1,"journal_id":"own"}`), own: "own"},
		"the mirror of another":             {objects: mirrored(`{"format":1,"journal_id":"other"}`), own: "own", refused: true},
		"no journal, the mirror of another": {objects: mirrored(`{"format":1,"journal_id":"other"}`), refused: true},
		"a newer mirror, its own":           {objects: mirrored(`{"format":99,"journal_id":"own"}`), own: "own"},
		"a newer mirror without a journal":  {objects: mirrored(`{"format":99}`), refused: true},
		"an unreadable mirror":              {objects: mirrored(`garbage`), own: "own", refused: true},
		"no answer":                         {faulty: "ekco-journal", own: "own", refused: true},
		"no journal, an operator":           {objects: ready(1), refused: true},
		"its own journal, an operator":      {objects: ready(1), own: "own"},
		"no journal, an operator not ready": {objects: ready(0)},
	} {
		t.Run(name, func(t *testing.T) {
			api, cfg := newReachable(t, test.objects)
			api.faulty = test.faulty
			if err := checkElsewhere(t.Context(), cfg, test.own, slog.New(slog.DiscardHandler)); (err != nil) != test.refused {
				t.Errorf("got %v, refused should be %t", err, test.refused)
			}
		})
	}
}
