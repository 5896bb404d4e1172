// Package syscalls shows a test in which order its own process writes, syncs, renames, links and removes files, and can
// make these calls fail. The kernel reports each call before it is made (seccomp's user notification), so the code
// under test, such as a database, needs no change.
//
// A watched process stays watched until its end, so watch a child process.
package syscalls
