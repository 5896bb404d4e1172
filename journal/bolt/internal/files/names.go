package files

import (
	"path/filepath"
	"strings"
)

// The modes of what EKCO makes.
const (
	DirectoryMode = 0o700
	FileMode      = 0o600
)

// What follows the journal's name in those of the files beside it: one that is
// being made, and one that was set aside, before the time.
const (
	FreshSuffix   = ".new"
	CompactSuffix = ".compact"
	SalvageSuffix = ".salvage"
	ExportSuffix  = ".export"
	DamagedSuffix = ".damaged-"
)

// ExportEnding ends the names of exports, which begin with [ExportBase].
const ExportEnding = ".ndjson.gz"

// ExportBase begins the names of exports from the journal at path.
func ExportBase(path string) string { return strings.TrimSuffix(path, filepath.Ext(path)) }

// BesidePrefix begins the names of directories for copies and imports beside the
// journal at path.
func BesidePrefix(path string) string { return filepath.Base(path) + ".beside-" }
