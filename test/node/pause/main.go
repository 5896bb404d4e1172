// Command pause keeps a pod's namespaces. It replaces Kubernetes' own pause image, which is only available from a
// registry.
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
