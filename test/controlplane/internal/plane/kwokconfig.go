package plane

import (
	_ "embed"
	"fmt"
	"os"
)

// stages defines how the simulated kubelets treat nodes and pods.
//
//go:embed stages.yaml
var stages string

// kwokConfiguration has every option with a default, because kwok uses zero for a
// missing option, and does nothing with a parallelism of zero.
const kwokConfiguration = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
metadata:
  name: controlplane
options:
  enableDebuggingHandlers: true
  enableContentionProfiling: false
  enableProfilingHandler: false
  podPlayStageParallelism: %[1]d
  nodePlayStageParallelism: %[1]d
  nodeLeaseParallelism: %[1]d
  podsOnNodeSyncParallelism: %[1]d
  enablePodsOnNodeSyncListPager: false
  enablePodsOnNodeSyncStreamWatch: false
---
`

func (d Dir) writeKwokConfig(t pace) error {
	config := fmt.Sprintf(kwokConfiguration, t.kwokParallelism) + stages
	if err := os.WriteFile(d.kwokConfig(), []byte(config), 0o600); err != nil {
		return fmt.Errorf("cannot write kwok's configuration: %w", err)
	}
	return nil
}
