package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFlattenConfigWritesAFileThatOnlyItsOwnerReads(t *testing.T) {
	d := newDesk(t, nil)
	to := filepath.Join(t.TempDir(), "live.yaml")
	d.expect(d.types("flatten-config", configFile(t, "  a: 'b' # c\r\n"), to), exitDone, "", "")
	content, err := os.ReadFile(to)
	if err != nil || string(content) != "a: \"b\"\n" {
		t.Errorf("the file is %q, %v", content, err)
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	d.expect(d.types("flatten-config", configFile(t, "storage_migration_auth_token: x\na: b: c"), to), exitUsage, "", "config.yaml is not valid YAML")
	d.expect(d.types("flatten-config", "/nowhere/live", to), exitFailed, "", "/nowhere/live")
}
