package files

import (
	"path/filepath"
	"strings"
)

// The modes of files and directories that EKCO creates.
const (
	DirectoryMode = 0o700
	FileMode      = 0o600
)

// Suffixes of files next to the journal. Files with the first four are unfinished. The time follows DamagedSuffix.
const (
	FreshSuffix   = ".new"
	CompactSuffix = ".compact"
	SalvageSuffix = ".salvage"
	ExportSuffix  = ".export"
	DamagedSuffix = ".damaged-"
)

// ExportEnding is the end of the names of exports.
const ExportEnding = ".ndjson.gz"

// ExportBase returns the start of the names of exports from the journal at path.
func ExportBase(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) }

// TempDirPrefix returns the start of the names of temporary directories next to the journal at path.
func TempDirPrefix(path string) string { return filepath.Base(path) + ".beside-" }
