package rook

import (
	"github.com/replicatedhq/ekco/fsm"
)

func (m machine) Table() fsm.Table {
	return fsm.Table{
		Name: Machine, Title: "Rook's storage",
		About: "CephCluster `rook-ceph/rook-ceph`, the CephBlockPool `ceph_block_pool`, the CephFilesystem `ceph_filesystem` and the CephObjectStore\n" +
			"`ceph_object_store`, each by its UID; and what Ceph says of itself, by its fsid, of which EKCO sets by command\n" +
			"what no object says.",
		Initial: string(InStep), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "behind", From: fsm.Names(InStep, Changing, Unknown), To: string(Behind), When: "it differs from what the cluster's nodes and hosts call for", Tells: m.Tells("it differs from what the cluster's nodes and hosts call for")},
			{Event: "change", From: fsm.Names(Behind, InStep, Unknown), To: string(Changing), When: "an action about it is open", Tells: m.Tells("it is being changed")},
			{Event: "reached", From: fsm.Names(Behind, Changing, Unknown), To: string(InStep), When: "nothing is to be changed about it", Tells: m.Tells("nothing is to be changed about it")},
			{Event: "forget", From: fsm.Names(InStep, Behind, Changing), To: string(Unknown), When: "nobody knows on which hosts Ceph has OSDs", Tells: m.Tells("nobody knows yet on which hosts Ceph has OSDs: Ceph has not answered")},
			{Event: "removed", From: fsm.Names(InStep, Behind, Changing, Unknown), To: string(Removed), When: "there is no such object any more, or EKCO shall not look", Tells: m.TellsLost},
			{Event: "back", From: fsm.Names(Removed), To: string(InStep), When: "there is such an object again, and EKCO shall look", Tells: m.Tells("it is back")},
		},
	}
}
