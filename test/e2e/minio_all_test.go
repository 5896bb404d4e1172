package e2e

import "testing"

// TestMinIO runs EKCO, a real control plane and up to seven real MinIO servers. Each group has a
// cluster of its own, on which its scenes run one after the other. The groups run in parallel: they mostly
// wait for MinIO and Kubernetes.
func TestMinIO(t *testing.T) {
	t.Parallel()
	t.Run("replicas", func(t *testing.T) {
		t.Parallel()
		m := startMinio(t, minioDisks{}, 2)
		m.run(t, "quiet without MinIO", quietWithoutMinio)
		m.run(t, "grow and Service repaired", growAndServiceRepaired)
		m.run(t, "spread across a kill", spreadAcrossAKill)
		m.run(t, "restored after a purge", restoredAfterAPurge)
	})
	t.Run("migration", func(t *testing.T) {
		t.Parallel()
		m := startMinio(t, minioDisks{}, 4)
		m.run(t, "while clients write", migrationWhileClientsWrite)
		m.run(t, "held before the switch", migrationHeldBeforeTheSwitch)
		m.run(t, "by two EKCOs", migrationByTwoEKCOs)
	})
	t.Run("interrupted migration", func(t *testing.T) {
		t.Parallel()
		m := startMinio(t, minioDisks{single: 256, replica: 96}, 4)
		m.run(t, "killed at each effect", migrationKilledAtEachEffect)
		m.run(t, "killed at random", migrationKilledAtRandom)
		m.run(t, "with full disks", migrationWithFullDisks)
	})
}
