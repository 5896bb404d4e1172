package config

import "time"

// Minio are the settings of MinIO.
type Minio struct {
	EnableHAMinio  bool
	MinioNamespace string
	MinioUtilImage string
	// MinioVolumeWait is how long a replica that waits for its volume keeps it.
	MinioVolumeWait time.Duration
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
			help: "how long a replica of MinIO whose volume no node has waits for it, until it gets a new one",
		},
	}
}
