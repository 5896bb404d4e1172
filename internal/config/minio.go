package config

import "time"

// Minio are the settings of MinIO.
type Minio struct {
	EnableHAMinio  bool
	MinioNamespace string
	MinioUtilImage string
	// MinioVolumeWait is how long a replica waits for its volume, and how long a migration waits for the
	// standalone MinIO.
	MinioVolumeWait time.Duration
	// MinioHealSettleTime is how long MinIO must restore no data before EKCO moves a replica, and before the
	// move is done.
	MinioHealSettleTime time.Duration
	// MinioCutoverLimit is how long the switch to the highly available MinIO may take with few objects.
	MinioCutoverLimit time.Duration
	// MinioKeepSource is how long the highly available MinIO must have served before the standalone one is
	// deleted.
	MinioKeepSource time.Duration
	// MinioCopyBandwidth is the maximum number of bytes copied per second; 0 for no limit.
	MinioCopyBandwidth Bytes
}

func (m *Minio) keys() []key {
	return []key{
		{
			name: "enable_ha_minio", value: &m.EnableHAMinio, built: true,
			help: "give the highly available MinIO its replicas once three nodes are ready, and keep them spread",
		},
		{
			name: "minio_namespace", value: &m.MinioNamespace, built: true, check: namespace,
			help: "namespace of MinIO; empty if there is none",
		},
		{
			name: "minio_util_image", value: &m.MinioUtilImage,
			help: "image of the pods that copy MinIO's data",
		},
		{
			name: "minio_volume_wait", value: &m.MinioVolumeWait, byDefault: "5m", check: positive, built: true,
			help: "how long a replica of MinIO waits for its volume, if no node has it, before it gets a new one; also how long the standalone MinIO must be down before a migration may be forced",
		},
		{
			name: "minio_heal_settle_time", value: &m.MinioHealSettleTime, byDefault: "30s", check: atLeastASecond, built: true,
			help: "how long MinIO must restore no data before a replica moves, and again before its move is done; also the first wait after a check found data missing on a drive",
		},
		{
			name: "minio_cutover_limit", value: &m.MinioCutoverLimit, byDefault: "20s", check: positive, built: true,
			help: "how long clients may have no MinIO while Service minio is switched to the highly available one, plus 1s for each 10,000 objects, or the time to list them if that is longer; " +
				"after three times as long EKCO switches it back",
		},
		{
			name: "minio_keep_source", value: &m.MinioKeepSource, byDefault: "10m", built: true,
			help: "how long the highly available MinIO must have served healthily before the standalone one is deleted",
		},
		{
			name: "minio_copy_bandwidth", value: &m.MinioCopyBandwidth, built: true,
			help: "bytes per second that may be copied to the highly available MinIO; 0 for no limit",
		},
	}
}
