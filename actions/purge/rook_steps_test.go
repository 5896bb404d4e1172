package purge

import (
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/internal/rook"
)

func TestADeploymentThatAFinalizerKeepsNamesIt(t *testing.T) {
	captured := rook.OSDDeployment{Name: "rook-ceph-osd-3", UID: "d3", OSD: rook.UnknownOSD}
	for _, finalizers := range [][]string{nil, {"backup.example.com/slow"}} {
		now := captured
		now.Finalizers = finalizers
		proof := storageView{deployments: []rook.OSDDeployment{now}}.deployment(captured).stillExists()
		if proof.Done || proof.NeedsOthers != (finalizers != nil) || !strings.Contains(proof.Missing, "deployment rook-ceph/rook-ceph-osd-3") ||
			!strings.Contains(proof.Missing, strings.Join(finalizers, "")) {
			t.Errorf("with finalizers %q: %+v", finalizers, proof)
		}
	}
}
