package config

import "time"

// General are the settings of EKCO itself.
type General struct {
	LogLevel         string
	Kubeconfig       string
	ListenAddress    string
	Journal          string
	JournalRetention time.Duration
	JournalMaxSize   Bytes
	DryRun           bool
}

func (g *General) keys() []key {
	return []key{
		{
			name: "log_level", value: &g.LogLevel, byDefault: "info", built: true, check: oneOf("debug", "info", "warn", "error"),
			help: "least severe level that is logged: debug, info, warn or error",
		},
		{
			name: "kubeconfig", value: &g.Kubeconfig, built: true,
			help: "kubeconfig to use outside of a cluster; empty means the pod's service account",
		},
		{
			name: "listen_address", value: &g.ListenAddress, byDefault: ":8080", built: true, check: address,
			help: "address of /healthz, /readyz and /metrics",
		},
		{
			name: "journal", value: &g.Journal, byDefault: "/var/lib/ekco/journal.db", built: true, check: notEmpty,
			help: "file of the journal; the operator's socket is next to it, with the extension .sock",
		},
		{
			name: "journal_retention", value: &g.JournalRetention, byDefault: "2160h", built: true, check: positive,
			help: "age at which EKCO moves events of finished actions into a compressed export next to the journal; at four times this age it removes exports and damaged journals, except the newest",
		},
		{
			name: "journal_max_size", value: &g.JournalMaxSize, byDefault: "512Mi", built: true, check: journalSize,
			help: "size of the journal above which EKCO also moves out younger events, the oldest first; 0 for no limit. Exports next to it may take twice this size, and damaged journals as well",
		},
		{
			name: "dry_run", value: &g.DryRun, built: true,
			help: "change nothing, and record what would be done",
		},
	}
}

// minJournalSize is the smallest limit. With less, EKCO would move out events all the time.
const minJournalSize = 16 << 20

func journalSize(value any) string {
	if b, ok := value.(*Bytes); ok && *b != 0 && *b < minJournalSize {
		return "a size of at least 16Mi, like 512Mi or 2Gi, or 0 for no limit"
	}
	return ""
}
