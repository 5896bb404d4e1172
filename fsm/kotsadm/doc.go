// Package kotsadm is the machine for kotsadm's database, rqlite. EKCO scales it to three replicas once three nodes are
// ready, and never scales it back to one.
package kotsadm
