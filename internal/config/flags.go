package config

import (
	"time"

	"github.com/spf13/pflag"
)

// flagValue keeps a flag's text; [Load] judges it together with the rest of
// the configuration, so that all problems are reported at once.
type flagValue struct {
	key, text, kind string
}

func (v *flagValue) String() string        { return v.text }
func (v *flagValue) Set(text string) error { v.text = text; return nil }
func (v *flagValue) Type() string          { return v.kind }

// IsBoolFlag lets "--key" stand for "--key=true".
func (v *flagValue) IsBoolFlag() bool { return v.kind == "bool" }

// RegisterOperatorFlags adds a flag for every key, with exactly the key's name,
// that is not there already.
func RegisterOperatorFlags(flags *pflag.FlagSet) {
	RegisterFlags(flags, Keys()...)
}

// RegisterPurgeNodeFlags adds the flags that today's callers of purge-node may
// give.
func RegisterPurgeNodeFlags(flags *pflag.FlagSet) {
	RegisterFlags(flags, "min_ready_master_nodes", "min_ready_worker_nodes", "maintain_rook_storage_nodes",
		"rook_version", "certificates_dir")
}

// RegisterFlags adds flags for the named keys that are not there already.
// Names that are no keys are ignored.
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
