package config

import "time"

// Minio are the settings of MinIO.
type Minio struct {
	EnableHAMinio  bool
	MinioNamespace string
	MinioUtilImage string
	// MinioVolumeWait is how long a replica that waits for its volume keeps it, and the single
	// MinIO is waited for in a migration.
	MinioVolumeWait time.Duration
	// MinioHealSettleTime is how long MinIO must restore no data before a replica is taken
	// away, and before its move is over.
	MinioHealSettleTime time.Duration
	// MinioCutoverLimit is how long the switch to the highly available MinIO may take for
	// few objects.
	MinioCutoverLimit time.Duration
	// MinioKeepSource is how long that must have served before the single one is deleted.
	MinioKeepSource time.Duration
	// MinioCopyBandwidth limits the bytes that are copied in a second; 0 does not.
	MinioCopyBandwidth Bytes
}

func (m *Minio) keys() []key {
	return []key{
		{
			name: "enable_ha_minio", value: &m.EnableHAMinio, built: true,
			help: "give the highly available MinIO its replicas once three nodes are ready, and keep them spread",
		},
		{
			name: "minio_namespace", value: &m.MinioNamespace, built: true,
			help: "namespace of MinIO; empty if there is none",
		},
		{
			name: "minio_util_image", value: &m.MinioUtilImage,
			help: "image of the pods that copy MinIO's data",
		},
		{
			name: "minio_volume_wait", value: &m.MinioVolumeWait, byDefault: "5m", check: positive, built: true,
			help: "how long a replica of MinIO whose volume no node has waits for it, until it gets a new one; also how long the single MinIO must have been away before a migration may be forced past that",
		},
		{
			name: "minio_heal_settle_time", value: &m.MinioHealSettleTime, byDefault: "30s", check: aSecond, built: true,
			help: "how long MinIO must restore no data before a replica moves, and again before its move is done; also the first wait after a check found data missing on a drive",
		},
		{
			name: "minio_cutover_limit", value: &m.MinioCutoverLimit, byDefault: "20s", check: positive, built: true,
			help: "how long clients may be kept out while Service minio is switched to the highly available MinIO, and a second more for 10,000 objects each, or what listing them takes if that is more; " +
				"after three times as long it leads back",
		},
		{
			name: "minio_keep_source", value: &m.MinioKeepSource, byDefault: "10m", built: true,
			help: "how long the highly available MinIO must have served healthily before the single one is deleted",
		},
		{
			name: "minio_copy_bandwidth", value: &m.MinioCopyBandwidth, built: true,
			help: "how many bytes of content may be copied to the highly available MinIO in a second; 0 for as many as can be",
		},
	}
}
