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

// Suffixes of the files next to the journal: unfinished ones, and damaged ones, before the time.
const (
	FreshSuffix   = ".new"
	CompactSuffix = ".compact"
	SalvageSuffix = ".salvage"
	ExportSuffix  = ".export"
	DamagedSuffix = ".damaged-"
)

// ExportEnding is the end of the names of exports, after [ExportBase].
const ExportEnding = ".ndjson.gz"

// ExportBase is the begin of the names of exports from the journal at path.
func ExportBase(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) }

// BesidePrefix is the begin of the names of directories for copies and imports next to the journal at path.
func BesidePrefix(path string) string { return filepath.Base(path) + ".beside-" }
