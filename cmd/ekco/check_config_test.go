package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// configFile writes a configuration file.
func configFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckConfigReportsEveryInvalidValue(t *testing.T) {
	d := newDesk(t, nil)
	file := configFile(t, "node_unreachable_toleration: 5 minutes\nmin_ready_master_nodes: -1\npod_image_overrides: a\nstorage_migration_auth_token: [{}]\n")
	code := d.types("operator", "--check-config", file)
	for _, want := range []string{
		`node_unreachable_toleration is "5 minutes" (` + file + " line 1): want a duration above zero",
		`min_ready_master_nodes is "-1" (` + file + " line 2): want a whole number of at least 1",
		`pod_image_overrides is "a" (` + file + " line 3): want original=override pairs",
		"storage_migration_auth_token is a value that is not shown",
	} {
		d.expect(code, exitUsage, "", want)
	}
	if lines := strings.Count(d.errOut.String(), "\n"); lines != 4 || d.out.Len() > 0 {
		t.Errorf("%d lines of problems, and on standard output %q", lines, d.out)
	}
}

func TestCheckConfigReportsWhatIsIgnored(t *testing.T) {
	d := newDesk(t, nil)
	file := configFile(t, "clear_after: 1m\nunknown_key: 1\npod_image_overrides: a=b\n")
	code := d.types("operator", "--check_config", file)
	d.expect(code, exitDone, file+" is valid\n", "")
	d.expect(code, exitDone, "unknown_key", "")
	d.expect(code, exitDone, "(pod_image_overrides)", "")
}

func TestCheckConfigLooksOnlyAtTheFile(t *testing.T) {
	d := newDesk(t, nil)
	d.env["CLEAR_AFTER"] = "silly"
	t.Setenv("CLEAR_AFTER", "silly") // without a function to look it up, config reads the process's environment
	d.expect(d.types("operator", "--check-config", configFile(t, ""), "--settling_time", "silly"), exitDone, "is valid", "")
}

func TestCheckConfigNeedsAFile(t *testing.T) {
	d := newDesk(t, nil)
	d.expect(d.types("operator", "--check-config", ""), exitUsage, "", "--check-config needs the name of a file")
	// 2 would mean that the file has an invalid value.
	d.expect(d.types("operator", "--check-config", "/nowhere/config.yaml"), exitFailed, "", "/nowhere/config.yaml")
	directory := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	d.expect(d.types("operator", "--check-config", directory), exitFailed, "", "is a directory")
	d.expect(d.types("operator", "--check-config", configFile(t, "a: b: c")), exitUsage, "", "is not valid YAML")
}
