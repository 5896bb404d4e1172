package minio

import (
	"fmt"
	"time"

	"github.com/replicatedhq/ekco/fsm"
	"github.com/replicatedhq/ekco/journal"
)

// Table returns the states and transitions of MinIO.
func Table() fsm.Table {
	return fsm.Table{
		Name: Machine, Title: "MinIO",
		About: "MinIO in the namespace `minio_namespace`. The identity is the UID of its StatefulSet `ha-minio`, the highly available one;\n" +
			"Deployment `minio` is standalone MinIO.",
		Initial: string(Single), Normal: fsm.Names(Single, HA), Over: fsm.Names(Absent),
		Transitions: []fsm.Transition{
			{Event: "migrate", From: fsm.Names(Single), To: string(Migrating), When: "a migration has begun", Report: fsm.ReportReason("EKCO copies its data to ha-minio")},
			{Event: "called-off", From: fsm.Names(Migrating), To: string(Single), When: "the migration ended before Service `minio` selected `ha-minio`", Report: fsm.ReportReason("the migration ended before the switch")},
			{Event: "highly-available", From: fsm.Names(Single, Migrating), To: string(HA), When: "Service `minio` selects `ha-minio`", Report: reportService},
			{Event: "single", From: fsm.Names(HA), To: string(Single), When: "Service `minio` does not select `ha-minio`", Report: reportService},
			{Event: "absent", From: fsm.Names(Single, Migrating, HA), To: string(Absent), When: "there is no StatefulSet with the annotation `kurl.sh/desired-scale`, or the settings exclude MinIO", Report: fsm.ReportReason("EKCO no longer manages it")},
			{Event: "present", From: fsm.Names(Absent), To: string(Single), When: "there is such a StatefulSet again, and the settings include MinIO", Report: fsm.ReportReason("it exists again")},
		},
	}
}

func reportService(t *fsm.Thing, _ journal.State, _ time.Time) fsm.Report {
	return fsm.Report{Reason: selectsText(of(t).Service), Cause: t.Newest()}
}

// selectsText returns a sentence that says what Service minio selects.
func selectsText(service journal.MinioService) string {
	if service == "" {
		return "there is no Service minio"
	}
	return fmt.Sprintf("Service minio selects %s", service)
}
