// Package kotsadm is the machine of kotsadm's database, rqlite: it has three replicas
// once three nodes are ready, and is never scaled back to one.
package kotsadm
