package rook

import (
	"github.com/replicatedhq/ekco/fsm"
)

func (m machine) Table() fsm.Table {
	return fsm.Table{
		Name: Machine, Title: "Rook's storage",
		About: "CephCluster `rook-ceph/rook-ceph`, the CephBlockPool `ceph_block_pool`, the CephFilesystem `ceph_filesystem` and the CephObjectStore\n" +
			"`ceph_object_store`, each by its UID; and Ceph itself, by its fsid, for the numbers that EKCO sets by command\n" +
			"because no object has them.",
		Initial: string(InStep), Normal: fsm.Names(InStep), Over: fsm.Names(Removed),
		Transitions: []fsm.Transition{
			{Event: "behind", From: fsm.Names(InStep, Changing, Unknown), To: string(Behind), When: "it differs from what the nodes and hosts require", Report: fsm.ReportReason("it differs from what the nodes and hosts require")},
			{Event: "change", From: fsm.Names(Behind, InStep, Unknown), To: string(Changing), When: "an action about it is open", Report: fsm.ReportReason("it is being changed")},
			{Event: "reached", From: fsm.Names(Behind, Changing, Unknown), To: string(InStep), When: "it needs no change", Report: fsm.ReportReason("it needs no change")},
			{Event: "forget", From: fsm.Names(InStep, Behind, Changing), To: string(Unknown), When: "Ceph has not reported which hosts have OSDs", Report: fsm.ReportReason("Ceph has not reported yet which hosts have OSDs")},
			{Event: "removed", From: fsm.Names(InStep, Behind, Changing, Unknown), To: string(Removed), When: "the object is deleted, or the settings exclude it", Report: m.ReportLost},
			{Event: "back", From: fsm.Names(Removed), To: string(InStep), When: "the object exists again, and the settings include it", Report: fsm.ReportReason("it is back")},
		},
	}
}
