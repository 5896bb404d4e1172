// Package observers is the engine of observation: it turns what there is to see
// into facts in the journal. It never decides and never acts, and it knows nothing
// of what is observed: that is in the packages below it, observers/nodes and
// observers/pods for example, each with a [Source].
//
// The package is level-triggered. A source keeps two things up to date in memory:
// what is, and what the journal was last told (see [Differ]). One goroutine, the
// outbox, writes the difference, everything that is due in one batch. From that
// follow the package's promises:
//
//   - A fact is written only when it differs from the last one written; a
//     heartbeat costs nothing.
//   - What happened while EKCO was away, while a watch was broken, or while the
//     journal could not be written is not lost: it shows up as a difference when
//     the list, the watch or the journal is back. Of several changes in such a
//     time the newest is written; the ones between are not.
//   - A batch tells the story in its order: an outage of the Kubernetes API begins,
//     what was seen, source by source, the outage ends.
//   - An outage has ended only when everything was looked at anew.
//   - What is absent is quiet. Where a watch is forbidden, EKCO polls; where even a
//     list is, or where there is nothing to ask, it says so once, lists it in
//     [Observers.Absent], looks again at each poll, and says when that changes.
//
// [Watch] is for objects of the Kubernetes API. At rest it makes no requests but
// the renewal of a watch that the API server ended after five to ten minutes.
// [Poll] is for what has no watch.
package observers
