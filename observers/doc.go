// Package observers is the engine that writes facts about the cluster into the journal. It never decides and never
// acts. The packages in its subfolders, for example observers/nodes and observers/pods, define what to observe, each
// with a [Source].
//
// The package is level-triggered. A source keeps two states in memory: the present facts, and those in the journal
// (see [Differ]). One goroutine, the outbox, writes all differences in one batch. So:
//
//   - A fact is written only when it differs from the last one; a heartbeat costs nothing.
//   - Changes during a stop of EKCO, a broken watch or an unwritable journal are not lost: they are differences
//     when the list, the watch or the journal works again. Of several changes in such a time, only the newest is
//     written.
//   - A batch is in chronological order: the start of an outage of the Kubernetes API, the facts, source by source,
//     the end of the outage.
//   - An outage ends only after everything was read again.
//   - Missing objects and permissions cause no noise. If a watch is forbidden, EKCO polls; if even a list is
//     forbidden, or there is nothing to read, it logs that once, lists it in [Observers.Absent], retries at each
//     poll, and logs when that changes.
//
// [Watch] is for objects of the Kubernetes API. While nothing changes, its only requests renew watches that the API
// server ended after five to ten minutes. [Poll] is for what has no watch.
package observers
