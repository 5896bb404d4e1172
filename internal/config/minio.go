package config

// Minio are the settings of MinIO.
type Minio struct {
	EnableHAMinio  bool
	MinioNamespace string
	MinioUtilImage string
}

func (m *Minio) keys() []key {
	return []key{
		{
			name: "enable_ha_minio", value: &m.EnableHAMinio, does: "grow MinIO to several replicas",
			help: "grow MinIO to several replicas as nodes join",
		},
		{
			name: "minio_namespace", value: &m.MinioNamespace,
			help: "namespace of MinIO; may be empty",
		},
		{
			name: "minio_util_image", value: &m.MinioUtilImage,
			help: "image of the pods that copy MinIO's data",
		},
	}
}
