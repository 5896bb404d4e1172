// Package rooktypes checks EKCO against Rook's own Go types.
//
// EKCO reads and writes a few JSON fields of Rook's objects, and never imports Rook (see package internal/rook). A
// mistake in a field's name would compile, pass every test that repeats it, and be ignored by Rook. Here the real client
// of internal/rook uses objects of the types of github.com/rook/rook v1.10.0, Deployments of Kubernetes' types, and the
// manifests that Rook ships, behind an API server in memory. The tests prove that
//
//   - every object that EKCO writes decodes strictly into Rook's type: it has no unknown field and no field of the wrong
//     type, and the case of names counts;
//   - the fields that EKCO means to change are changed, and every other field of Rook's types, filled at random, is
//     unchanged;
//   - every field that EKCO reads is one that Rook writes.
//
// The tests are in a separate Go module, because Rook must not become a dependency of EKCO. Rook's types import three
// large libraries for a few names that are not part of an object. Of these, controller-runtime does not compile with
// present Kubernetes libraries, and the dependencies of Vault's client and of libopenstorage/secrets conflict with them.
// standin/ declares those names instead. A test checks that no field of a CephCluster has a type from standin/.
//
// v1.10.0 is the newest version with the types in module github.com/rook/rook; later versions have a separate module for
// them. test/e2e tests EKCO's requests with a real API server.
package rooktypes
