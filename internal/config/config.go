package config

import (
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Config is every setting of EKCO, after defaults. The comment of a key is its
// help text in the key table. Those whose feature is not built yet are read and
// validated all the same, so that a configuration is judged as a whole.
type Config struct {
	// File is the configuration file that was read, empty when there was none.
	File string
	// UnknownKeys are the keys of File that this EKCO does not know, sorted.
	UnknownKeys []string
	// Explicit are the keys that a flag or the environment set, sorted.
	Explicit []string

	LogLevel      string
	Kubeconfig    string
	ListenAddress string

	Journal          string
	JournalRetention time.Duration
	JournalMaxSize   Bytes

	DryRun                    bool
	NodeUnreachableToleration time.Duration
	ClearDeadNodes            bool
	ClearAfter                time.Duration
	PodTerminationGrace       time.Duration
	PurgeDeadNodes            bool
	PurgeCooldown             time.Duration
	MinReadyMasterNodes       int
	MinReadyWorkerNodes       int
	MaxUnknownNodes           MaxUnknown
	SettlingTime              time.Duration
	ReconcileInterval         time.Duration
	ReconcileTimeout          time.Duration
	CertificatesDir           string

	RookVersion               string
	MaintainRookStorageNodes  bool
	OSDPurgeWait              time.Duration
	RookStorageNodes          string
	RookStorageNodesLabel     string
	ReconcileRookMDSPlacement bool
	ReconcileCephCSIResources bool
	CephBlockPool             string
	CephFilesystem            string
	CephObjectStore           string
	MinCephPoolReplication    int
	MaxCephPoolReplication    int
	RookPriorityClass         string
	RookMinimumNodeCount      int
	RookCephImage             string
	RookStorageClass          string
	StorageMigrationAuthToken string

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
	ContourNamespace            string
	ContourCertNamespace        string
	ContourCertSecret           string
	EnvoyCertSecret             string

	HostTaskImage                    string
	HostTaskNamespace                string
	EnableInternalLoadBalancer       bool
	InternalLoadBalancerHAProxyImage string
	InternalLoadBalancerPort         int
	PodImageOverrides                []ImageOverride
	AutoApproveKubeletCSRs           bool
	RestartFailedEnvoyPods           bool
	EnvoyPodsNotReadyDuration        time.Duration

	EnableHAMinio   bool
	MinioNamespace  string
	MinioUtilImage  string
	EnableHAKotsadm bool
}

// Bytes is a size.
type Bytes int64

// String returns the size in the largest unit that it is a multiple of: 512Mi.
func (b Bytes) String() string {
	unit := 0
	for ; b != 0 && b%1024 == 0 && unit+1 < len(byteUnits); unit++ {
		b /= 1024
	}
	return strconv.FormatInt(int64(b), 10) + byteUnits[unit]
}

// byteUnits are those that Kubernetes writes, each 1024 of the one before.
var byteUnits = []string{"", "Ki", "Mi", "Gi", "Ti"}

// ImageOverride replaces the image Original by Override in new pods.
type ImageOverride struct{ Original, Override string }

// String returns "original=override".
func (o ImageOverride) String() string { return o.Original + "=" + o.Override }

// Default returns the settings that hold when nothing is configured. They are
// those of the operator's flags; kURL writes others into its file.
func Default() Config {
	return Config{
		LogLevel:      "info",
		ListenAddress: ":8080",

		Journal:          "/var/lib/ekco/journal.db",
		JournalRetention: 90 * 24 * time.Hour,
		JournalMaxSize:   512 << 20,

		NodeUnreachableToleration: time.Hour,
		ClearDeadNodes:            true,
		ClearAfter:                5 * time.Minute,
		PodTerminationGrace:       30 * time.Second,
		PurgeCooldown:             10 * time.Minute,
		MinReadyMasterNodes:       2,
		MaxUnknownNodes:           MaxUnknown{Percent: 55, IsPercent: true},
		SettlingTime:              15 * time.Second,
		ReconcileInterval:         time.Minute,
		ReconcileTimeout:          15 * time.Minute,
		CertificatesDir:           "/etc/kubernetes/pki",

		CephBlockPool:          "replicapool",
		CephFilesystem:         "rook-shared-fs",
		CephObjectStore:        "replicated",
		MinCephPoolReplication: 1,
		MaxCephPoolReplication: 3,
		RookPriorityClass:      "node-critical",

		RotateCerts:                 true,
		RotateCertsImage:            "replicated/ekco:latest",
		RotateCertsNamespace:        "kurl",
		RotateCertsTTL:              30 * 24 * time.Hour,
		RotateCertsCheckInterval:    24 * time.Hour,
		RegistryCertNamespace:       "kurl",
		RegistryCertSecret:          "registry-pki",
		KurlProxyCertNamespace:      "default",
		KurlProxyCertSecret:         "kotsadm-tls",
		KotsadmKubeletCertNamespace: "default",
		KotsadmKubeletCertSecret:    "default",
		ContourNamespace:            "projectcontour",
		ContourCertNamespace:        "projectcontour",
		ContourCertSecret:           "contourcert",
		EnvoyCertSecret:             "envoycert",

		HostTaskImage:                    "replicated/ekco:latest",
		HostTaskNamespace:                "kurl",
		InternalLoadBalancerHAProxyImage: "haproxy:lts-alpine",
		InternalLoadBalancerPort:         6444,
		RestartFailedEnvoyPods:           true,
		EnvoyPodsNotReadyDuration:        5 * time.Minute,

		RookStorageClass: "distributed",
	}
}

// Socket returns where the operator that owns the journal is asked: beside the
// journal, with the extension .sock. For /var/lib/ekco/journal.db that is
// /var/lib/ekco/journal.sock.
func (c Config) Socket() string { return SocketOf(c.Journal) }

// SocketOf returns the socket that belongs to a journal's path.
func SocketOf(journal string) string {
	return strings.TrimSuffix(journal, filepath.Ext(journal)) + ".sock"
}

// Redacted returns every setting by key, in the form the file takes, with
// secrets replaced.
func (c Config) Redacted() map[string]string {
	settings := make(map[string]string, len(keys))
	for _, k := range keys {
		text := format(k.field(&c))
		if k.secret && text != "" {
			text = "(set)"
		}
		settings[k.name] = text
	}
	return settings
}

// settle fills in the settings whose default depends on others.
func (c *Config) settle(set map[string]bool) {
	if !set["clear_after"] {
		c.ClearAfter = min(c.NodeUnreachableToleration, 5*time.Minute)
	}
	if !set["contour_namespace"] && set["contour_cert_namespace"] {
		c.ContourNamespace = c.ContourCertNamespace
	}
	if c.ReconcileTimeout == 0 {
		c.ReconcileTimeout = 15 * time.Minute
	}
}
