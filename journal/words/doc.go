// Package words says what the events of a journal mean to people, as data: for
// each type of event one [Row] with its sentence, its line in the log, its
// Kubernetes Event and its tone. The tables of the engine's own events are here,
// below every room that shows or logs them; what a capability brings is a
// [Component] of its own, which is handed to [New].
//
// Nothing here is safe to print: what is said may come from the cluster, and hold
// what a terminal obeys. Whoever prints it cleans it.
package words
