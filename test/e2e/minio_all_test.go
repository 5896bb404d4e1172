package e2e

import "testing"

// TestMinIO runs one after the other what takes seven servers each, beside the other tests:
// two of them at once would leave nothing for anybody else.
func TestMinIO(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"MinIOGetsItsReplicasAndItsServiceIsSetRightUnderTheShippedPermissions", testMinIOGetsItsReplicasAndItsServiceIsSetRightUnderTheShippedPermissions},
		{"ReplicasOfMinIOAreSpreadOneByOneAlsoWhenEKCOIsKilled", testReplicasOfMinIOAreSpreadOneByOneAlsoWhenEKCOIsKilled},
		{"AReplicaOfMinIOOnANodeThatIsPurgedGetsANewVolumeAndItsData", testAReplicaOfMinIOOnANodeThatIsPurgedGetsANewVolumeAndItsData},
		{"AMigrationOfMinIOThatCannotGoOnLeavesClientsAtTheSingleOne", testAMigrationOfMinIOThatCannotGoOnLeavesClientsAtTheSingleOne},
		{"AMigrationOfMinIOOutlivesFullDisksOnEitherSide", testAMigrationOfMinIOOutlivesFullDisksOnEitherSide},
		{"AMigrationOfMinIOEndsWholeWhereverEKCOIsKilled", testAMigrationOfMinIOEndsWholeWhereverEKCOIsKilled},
		{"TwoEKCOsThatMigrateMinIOAtOnceLoseNothing", testTwoEKCOsThatMigrateMinIOAtOnceLoseNothing},
		{"ASingleMinIOBecomesSixWhileClientsWriteAndNothingIsLost", testASingleMinIOBecomesSixWhileClientsWriteAndNothingIsLost},
		{"WithoutMinIOOrWithoutTheWishForItEKCOIsQuiet", testWithoutMinIOOrWithoutTheWishForItEKCOIsQuiet},
	} {
		t.Run(test.name, test.run)
	}
}
