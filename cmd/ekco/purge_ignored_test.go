package main

import (
	"strings"
	"testing"

	"github.com/replicatedhq/ekco/journal"
)

func TestPurgeNodeWarnsOfSettingsThatTheOperatorHasOtherwise(t *testing.T) {
	op := purging(t, journal.OutcomeDone)
	op.past = append(op.past, event(t, 1, "", journal.TypeOperatorStarted, journal.OperatorStarted{
		Settings: map[string]string{"certificates_dir": "/etc/kubernetes/pki", "kubeconfig": ""},
	}))
	d := newDesk(t, op)
	d.expect(d.types("purge-node", "worker-2", "--certificates_dir=/pki"), exitDone, "",
		"warning: certificates_dir=/pki has no effect: the operator does the work, with its own certificates_dir=/etc/kubernetes/pki\n")
	d.expect(d.types("purge-node", "worker-2", "--kubeconfig=/a"), exitDone, "", "warning: kubeconfig=/a has no effect")
	d.env["KUBECONFIG"] = "/root/.kube/config"
	d.expect(d.types("purge-node", "worker-2", "--certificates_dir=/etc/kubernetes/pki", "--maintain_rook_storage_nodes", "--rook_version=1.4.3"), exitDone, "", "")
	if strings.Contains(d.errOut.String(), "warning") {
		t.Errorf("said %q", d.errOut)
	}
}
