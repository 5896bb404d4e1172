package config

// Kotsadm are the settings of kotsadm's database.
type Kotsadm struct {
	EnableHAKotsadm bool
}

func (k *Kotsadm) keys() []key {
	return []key{
		{
			name: "enable_ha_kotsadm", value: &k.EnableHAKotsadm, built: true,
			help: "give kotsadm's database three replicas once three nodes are ready",
		},
	}
}
