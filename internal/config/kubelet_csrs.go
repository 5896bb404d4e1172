package config

// KubeletCSRs are the settings of what kubelets ask to have signed.
type KubeletCSRs struct {
	AutoApproveKubeletCSRs bool
}

func (k *KubeletCSRs) keys() []key {
	return []key{
		{
			name: "auto_approve_kubelet_csrs", value: &k.AutoApproveKubeletCSRs, does: "approve the serving certificates that kubelets ask for",
			help: "approve the serving certificates that kubelets ask for",
		},
	}
}
