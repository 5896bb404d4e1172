//go:build demo

package nodetest

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDemo starts a cluster with EKCO in it, for a person to play with, until that person ends it.
func TestDemo(t *testing.T) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	fmt.Println("starting a control plane, simulated nodes, and a real primary with EKCO in a pod: under a minute")
	w := install(t, nil, "--workers", "4", "--pods", "6")
	w.operator(t)
	w.installHostCommand(t)
	bin := filepath.Join(t.TempDir(), "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	// The cluster is in a network namespace of its own.
	enter := fmt.Sprintf("exec nsenter --net=/proc/%d/ns/net", os.Getpid())
	for name, script := range map[string]string{
		"kubectl":   fmt.Sprintf("KUBECONFIG=%s %s %s kubectl \"$@\"", filepath.Join(w.dir, "kubeconfig"), enter, binaries.controlplane),
		"ekco":      "terminal=; if [ -t 0 ]; then terminal=-it; fi\nexec " + bin + "/kubectl -n kurl exec $terminal deploy/ekc-operator -- ekco \"$@\"",
		"node":      fmt.Sprintf("%s %s node \"$@\" --dir %s", enter, binaries.controlplane, w.dir),
		"on-real-1": fmt.Sprintf("exec nsenter %s \"$@\"", strings.Join(w.node.machine.within([]string{"env", "KUBECONFIG=/etc/kubernetes/admin.conf"}), " ")),
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Printf(demoText, bin)
	<-ctx.Done()
	fmt.Println("\nending all of it")
}

const demoText = `
EKCO runs, from its image, in namespace kurl on real-1. In another terminal:

  export PATH=%s:$PATH
  kubectl get nodes                     # real-1 has a real kubelet; the others are simulated
  kubectl get pods -A -o wide
  ekco status                           # "ekco" is kubectl exec in EKCO's pod
  ekco history --follow                 # leave it running
  node lose worker-1                    # after some seconds its pods are Terminating, and cleared
  ekco purge-node worker-1
  ekco purge-node worker-2              # it is ready: EKCO asks
  node lose --wait 60s worker-3
  on-real-1 ekco-purge-node worker-3    # as an administrator does on a primary
  kubectl -n kurl delete pod -l app=ekc-operator             # in the middle of anything
  kubectl -n kurl scale deploy/ekc-operator --replicas=0     # and then 1
  ekco node-report real-1 -o wide       # by a pod that looks there; simulated nodes run no program
  node lose worker-4                    # and not for good
  ekco status
  node return worker-4

Minutes are seconds here. Ctrl-C ends all of it and leaves nothing behind.
`
