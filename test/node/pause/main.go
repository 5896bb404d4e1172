// Command pause holds a pod's namespaces together, as Kubernetes' own does, which cannot
// be had without a registry.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
