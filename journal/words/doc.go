// Package words is the message catalog: for each type of event it has one [Row] with its sentence, its log line, its
// Kubernetes Event and its tone. The tables of the engine's own events are here; capabilities pass theirs to [New] as
// a [Component].
//
// The texts are not safe to print: they may have control characters from the cluster. The printing code must clean
// them.
package words
