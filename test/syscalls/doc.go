// Package syscalls shows a test in which order its own process writes, syncs,
// renames, links and removes files, and lets any of these calls fail. The kernel reports
// each call before it is made (seccomp's user notification), so nothing in between,
// such as a database, needs to know.
//
// A process that is watched stays so to its end: do it in a child.
package syscalls
