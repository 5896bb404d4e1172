// Package rooktypes checks EKCO against Rook's own Go types.
//
// EKCO reads and writes Rook's objects as JSON, a few fields of them, and never
// imports Rook (see package internal/rook). A mistake in the name of a field
// would compile, pass every test that repeats it, and be ignored by Rook. Here
// the real client of internal/rook works on objects that are made with
// github.com/rook/rook v1.10.0's types, with the Deployments of Kubernetes' own,
// and with the manifests that Rook ships, behind an API server in memory. The
// tests prove that
//
//   - every object EKCO writes decodes strictly into Rook's type: no field that
//     Rook does not know, none of the wrong type, names compared with their case;
//   - what EKCO meant to change has changed, and every other field Rook's types
//     can hold, filled at random, is as it was;
//   - every field EKCO reads is one that Rook writes.
//
// They are a Go module of their own because Rook must not become a dependency of
// EKCO. Rook's types import three large libraries for a few names that are no
// part of an object. Of these, controller-runtime does not compile with the
// Kubernetes libraries of today, and the dependencies of Vault's client and of
// libopenstorage/secrets do not resolve beside them: standin/ declares those
// names instead. A test checks that no field of a CephCluster has a type from
// there.
//
// v1.10.0 is the newest version that has the types within github.com/rook/rook;
// later ones are a module apart. What a real API server makes of EKCO's requests
// is tested in test/e2e.
package rooktypes
