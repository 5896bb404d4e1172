package e2e

import "testing"

// TestMinIO runs one after the other what takes seven servers each, beside the other tests.
func TestMinIO(t *testing.T) {
	inTurn(t, []named{
		{"MinIOGetsItsReplicasAndItsServiceIsSetRightUnderTheShippedPermissions", testMinIOGetsItsReplicasAndItsServiceIsSetRightUnderTheShippedPermissions},
		{"ReplicasOfMinIOAreSpreadOneByOneAlsoWhenEKCOIsKilled", testReplicasOfMinIOAreSpreadOneByOneAlsoWhenEKCOIsKilled},
		{"AReplicaOfMinIOOnANodeThatIsPurgedGetsANewVolumeAndItsData", testAReplicaOfMinIOOnANodeThatIsPurgedGetsANewVolumeAndItsData},
		{"WithoutMinIOOrWithoutTheWishForItEKCOIsQuiet", testWithoutMinIOOrWithoutTheWishForItEKCOIsQuiet},
	})
}

// TestMigrationsOfMinIO are a second such series: in one, both would take longer than all the rest.
func TestMigrationsOfMinIO(t *testing.T) {
	inTurn(t, []named{
		{"AMigrationOfMinIOThatCannotGoOnLeavesClientsAtTheSingleOne", testAMigrationOfMinIOThatCannotGoOnLeavesClientsAtTheSingleOne},
		{"AMigrationOfMinIOOutlivesFullDisksOnEitherSide", testAMigrationOfMinIOOutlivesFullDisksOnEitherSide},
		{"AMigrationOfMinIOEndsWholeWhereverEKCOIsKilled", testAMigrationOfMinIOEndsWholeWhereverEKCOIsKilled},
		{"TwoEKCOsThatMigrateMinIOAtOnceLoseNothing", testTwoEKCOsThatMigrateMinIOAtOnceLoseNothing},
		{"ASingleMinIOBecomesSixWhileClientsWriteAndNothingIsLost", testASingleMinIOBecomesSixWhileClientsWriteAndNothingIsLost},
	})
}

type named struct {
	name string
	run  func(*testing.T)
}

func inTurn(t *testing.T, tests []named) {
	t.Helper()
	t.Parallel()
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}
