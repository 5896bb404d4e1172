package config

import (
	"path/filepath"
	"strings"
)

// Config is every setting of EKCO, after defaults: what a capability is told is a
// struct of its own, embedded here, with its keys in the file of the same name.
// Those whose feature is not built yet are read and validated all the same, so that
// a configuration is judged as a whole.
type Config struct {
	// File is the configuration file that was read, empty when there was none.
	File string
	// UnknownKeys are the keys of File that this EKCO does not know, sorted.
	UnknownKeys []string
	// Explicit are the keys that a flag or the environment set, sorted.
	Explicit []string

	// In the order of the documentation.
	General
	Nodes
	Pace
	Rook
	Certificates
	HostTasks
	LoadBalancer
	Images
	KubeletCSRs
	Envoy
	Minio
	Kotsadm
}

// Default returns the settings that hold when nothing is configured. They are
// those of the operator's flags; kURL writes others into its file.
func Default() Config {
	var config Config
	for _, k := range config.keys() {
		k.setDefault()
	}
	return config
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
	settings := make(map[string]string)
	for _, k := range c.keys() {
		text := format(k.value)
		if k.secret && text != "" {
			text = "(set)"
		}
		settings[k.name] = text
	}
	return settings
}
