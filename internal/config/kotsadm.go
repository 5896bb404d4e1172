package config

import "time"

// Kotsadm are the settings of kotsadm's database.
type Kotsadm struct {
	EnableHAKotsadm bool
	// KotsadmReadyTimeout is how long new replicas may take to become ready before EKCO shows what their pods
	// wait for.
	KotsadmReadyTimeout time.Duration
}

func (k *Kotsadm) keys() []key {
	return []key{
		{
			name: "enable_ha_kotsadm", value: &k.EnableHAKotsadm, built: true,
			help: "give kotsadm's database three replicas once three nodes are ready",
		},
		{
			name: "kotsadm_ready_timeout", value: &k.KotsadmReadyTimeout, byDefault: "1m", check: atLeastASecond, built: true,
			help: "how long new replicas of kotsadm's database may take to become ready before EKCO reports what their pods wait for",
		},
	}
}
