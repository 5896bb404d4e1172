// Package rook is a substitute for Rook's operator in tests. It does only what the tests of EKCO need. It watches
// Rook's custom resources on a real API server, and carries them out in the real Ceph of test/ceph: nodes that may
// store data get OSDs and their Deployments, pools are created and get their sizes, and monitors and managers are
// added. It also places the Deployments of MDS as their filesystem requests; their pods are simulated.
//
// It never removes a pool, OSD, monitor or manager. It does not recreate deleted Deployments, except those of MDS. It
// writes no status and no finalizers, starts neither Ceph's MDS nor a gateway, and uses only the size of a pool.
package rook
