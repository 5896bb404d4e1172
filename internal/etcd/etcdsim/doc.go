// Package etcdsim simulates in memory an etcd cluster as EKCO sees it, for crash and storm tests. A [Cluster]
// is an [etcd.API] with controls: kill and revive members, lose an answer, cut the network, and stop right
// before or after an effect.
//
// It refuses a removal in the same cases as etcd: without quorum, and if the removal of a live voter would
// leave too few. It starts no goroutine and waits only on timers, so it works inside a testing/synctest bubble.
package etcdsim
