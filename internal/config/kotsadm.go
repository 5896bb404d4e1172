package config

// Kotsadm are the settings of kotsadm's database.
type Kotsadm struct {
	EnableHAKotsadm bool
}

func (k *Kotsadm) keys() []key {
	return []key{
		{
			name: "enable_ha_kotsadm", value: &k.EnableHAKotsadm, does: "grow kotsadm's database to several replicas",
			help: "grow kotsadm's database to several replicas as nodes join",
		},
	}
}
