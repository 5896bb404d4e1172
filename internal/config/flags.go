package config

import (
	"time"

	"github.com/spf13/pflag"
)

// flagValue keeps a flag's text; [Load] checks it with the rest of the configuration, so that all problems are
// reported together.
type flagValue struct {
	key, text, kind string
}

func (v *flagValue) String() string        { return v.text }
func (v *flagValue) Set(text string) error { v.text = text; return nil }
func (v *flagValue) Type() string          { return v.kind }

// IsBoolFlag allows "--key" for "--key=true".
func (v *flagValue) IsBoolFlag() bool { return v.kind == "bool" }

// RegisterOperatorFlags adds a flag for every key that has none yet, with the name of the key.
func RegisterOperatorFlags(flags *pflag.FlagSet) {
	RegisterFlags(flags, Keys()...)
}

// RegisterPurgeNodeFlags adds the settings that existing scripts pass to purge-node as flags.
func RegisterPurgeNodeFlags(flags *pflag.FlagSet) {
	RegisterFlags(flags, "min_ready_master_nodes", "min_ready_worker_nodes", "maintain_rook_storage_nodes",
		"rook_version", "certificates_dir")
}

// RegisterFlags adds flags for the named keys that have none yet. Unknown names are ignored.
func RegisterFlags(flags *pflag.FlagSet, names ...string) {
	defaults := Default()
	byName := defaults.keysByName()
	for _, name := range names {
		k, known := byName[name]
		if !known || flags.Lookup(name) != nil {
			continue
		}
		flag := flags.VarPF(&flagValue{key: name, text: format(k.value), kind: kindOf(k.value)}, name, "", k.meaning())
		if flag.Value.Type() == "bool" {
			flag.NoOptDefVal = "true"
		}
	}
}

func kindOf(value any) string {
	switch value := value.(type) {
	case *bool:
		return "bool"
	case *int:
		return "int"
	case *time.Duration:
		return "duration"
	case ownType:
		return value.kind()
	}
	return "string"
}
