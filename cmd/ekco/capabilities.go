package main

import (
	"github.com/replicatedhq/ekco/cmd/internal/ring"
	"github.com/replicatedhq/ekco/internal/config"
	"github.com/replicatedhq/ekco/internal/kube"
)

// cluster is what capabilities are made with. Without clients they fold a journal,
// have their words and their policy, and can neither observe nor act.
type cluster struct {
	cfg     config.Config
	kube    *kube.Client
	outside outside
}

// capabilities is the one list of what this EKCO can do.
func capabilities(c cluster) ring.Capabilities {
	return ring.Capabilities{
		nodesOf(c),
	}
}
