// Package rook is a stand-in for Rook's operator, for tests alone: it is none, and does as
// little of what an operator does as the tests of EKCO need. It watches Rook's custom resources
// on a real API server, and carries what they ask for into the real Ceph of test/ceph: nodes
// that may store data get their OSDs and the Deployments of these, pools are made and get their
// sizes, monitors and managers are added, and the Deployments of MDS, whose pods are simulated
// as all are, are placed as their filesystem says.
//
// What it does not do: it takes nothing away (no pool, OSD, monitor or manager), makes no
// Deployment anew that was deleted (but for those of MDS), writes no status and no finalizers, starts neither an MDS of
// Ceph's nor a gateway, and looks at nothing else of a pool than its size.
package rook
