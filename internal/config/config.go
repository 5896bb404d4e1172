package config

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Config is every setting of EKCO, after defaults. Each capability has a struct that is embedded here; a Go file of
// this package with the struct's name declares the struct and its keys. Settings without effect in this version are
// read and validated too, so that the whole configuration is checked.
type Config struct {
	// File is the configuration file that was read, empty if there was none.
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

// Default returns the settings without any configuration: the defaults of the operator's flags. kURL writes
// others into its file.
func Default() Config {
	var config Config
	for _, k := range config.keys() {
		k.setDefault()
	}
	return config
}

// Socket returns the socket of the operator that owns the journal: next to the journal, with the extension
// .sock. For /var/lib/ekco/journal.db that is /var/lib/ekco/journal.sock.
func (c Config) Socket() string { return SocketOf(c.Journal) }

// SocketOf returns the socket that belongs to a journal's path.
func SocketOf(journal string) string {
	return strings.TrimSuffix(journal, filepath.Ext(journal)) + ".sock"
}

// SpareSocket returns the socket of an operator that cannot write the directory of its journal. Its name has a hash of
// the journal's path.
func (c Config) SpareSocket() string {
	path := c.Journal
	if whole, err := filepath.Abs(path); err == nil {
		path = whole
	}
	hash := sha256.Sum256([]byte(path))
	return filepath.Join(os.TempDir(), fmt.Sprintf("ekco-%x.sock", hash[:8]))
}

// Redacted returns every setting by key, in the form of the file, with secrets replaced.
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
