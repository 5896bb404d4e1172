package config

// KubeletCSRs are the settings of kubelets' certificate signing requests.
type KubeletCSRs struct {
	AutoApproveKubeletCSRs bool
}

func (k *KubeletCSRs) keys() []key {
	return []key{
		{
			name: "auto_approve_kubelet_csrs", value: &k.AutoApproveKubeletCSRs, built: true,
			help: "approve the serving certificates that kubelets ask for, each for the names of its own Node",
		},
	}
}
