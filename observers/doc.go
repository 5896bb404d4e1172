// Package observers turns watches of the Kubernetes API into facts in the
// journal. It never decides and never acts.
//
// The package is level-triggered. Watches keep two things up to date in memory:
// what the cluster says now, and what the journal was last told. One goroutine,
// the outbox, writes the difference, everything that is due in one batch. From
// that follow the package's promises:
//
//   - A fact is written only when it differs from the last one written; a
//     heartbeat costs nothing.
//   - What happened while EKCO was away, while a watch was broken, or while the
//     journal could not be written is not lost: it shows up as a difference when
//     the list, the watch or the journal is back. Of several changes in such a
//     time the newest is written; the ones between are not.
//   - A node replaced under its name is written as gone and as a new one.
//
// Nodes are watched always, pods only on nodes that are unknown (see
// [Observers.SetUnknown]). Where a watch is forbidden, EKCO polls; where even a
// list is, it says so once and looks again at each poll.
//
// At rest there are no requests but the renewal of a watch that the API server
// ended after five to ten minutes.
package observers
