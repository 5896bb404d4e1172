package config

import "time"

// Certificates are the settings of certificates that EKCO renews.
type Certificates struct {
	RotateCerts                 bool
	RotateCertsImage            string
	RotateCertsNamespace        string
	RotateCertsTTL              time.Duration
	RotateCertsCheckInterval    time.Duration
	RegistryCertNamespace       string
	RegistryCertSecret          string
	KurlProxyCertNamespace      string
	KurlProxyCertSecret         string
	KotsadmKubeletCertNamespace string
	KotsadmKubeletCertSecret    string
	ContourCertSecret           string
	EnvoyCertSecret             string
}

func (c *Certificates) keys() []key {
	return []key{
		{
			name: "rotate_certs", value: &c.RotateCerts, byDefault: "true", built: true,
			help: "renew the certificates of the control plane, registry, kURL proxy, Contour and Envoy before they expire, and copy kotsadm's kubelet client certificate",
		},
		{
			name: "rotate_certs_image", built: true, value: &c.RotateCertsImage, byDefault: "replicated/ekco:latest",
			help: "image of the pods that check and renew certificates on primaries",
		},
		{
			name: "rotate_certs_namespace", built: true, value: &c.RotateCertsNamespace, byDefault: "kurl",
			help: "namespace of the pods that check and renew certificates, and of ConfigMap rotate-certs",
		},
		{
			name: "rotate_certs_ttl", value: &c.RotateCertsTTL, byDefault: "720h", check: positive, built: true,
			help: "renew certificates that expire within this time",
		},
		{
			name: "rotate_certs_check_interval", value: &c.RotateCertsCheckInterval, byDefault: "24h", check: positive, built: true,
			help: "how often a pod checks the certificates on each primary",
		},
		{
			name: "registry_cert_namespace", value: &c.RegistryCertNamespace, byDefault: "kurl", built: true,
			help: "namespace of the registry",
		},
		{
			name: "registry_cert_secret", value: &c.RegistryCertSecret, byDefault: "registry-pki", built: true,
			help: "secret of the registry's certificate",
		},
		{
			name: "kurl_proxy_cert_namespace", value: &c.KurlProxyCertNamespace, byDefault: "default", built: true,
			help: "namespace of the kURL proxy",
		},
		{
			name: "kurl_proxy_cert_secret", value: &c.KurlProxyCertSecret, byDefault: "kotsadm-tls", built: true,
			help: "secret of the kURL proxy's certificate",
		},
		{
			name: "kotsadm_kubelet_cert_namespace", value: &c.KotsadmKubeletCertNamespace, byDefault: "default", built: true,
			help: "namespace of kotsadm",
		},
		{
			name: "kotsadm_kubelet_cert_secret", value: &c.KotsadmKubeletCertSecret, byDefault: "default", built: true,
			help: "secret of kotsadm's kubelet client certificate",
		},
		{
			name: "contour_cert_secret", value: &c.ContourCertSecret, byDefault: "contourcert", built: true,
			help: "secret of Contour's certificate",
		},
		{
			name: "envoy_cert_secret", value: &c.EnvoyCertSecret, byDefault: "envoycert", built: true,
			help: "secret of Envoy's certificate",
		},
	}
}
