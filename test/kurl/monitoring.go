package kurl

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
)

// MonitoringCRDs returns the files with the Prometheus operator's CRDs of Prometheus and Alertmanager, in the version
// that test/crds pins. dir is the folder of that module.
func MonitoringCRDs(t testing.TB, dir string) []string {
	t.Helper()
	folder := filepath.Join(moduleDir(t, dir, "github.com/prometheus-operator/prometheus-operator"), "example", "prometheus-operator-crd")
	return []string{
		filepath.Join(folder, "monitoring.coreos.com_prometheuses.yaml"),
		filepath.Join(folder, "monitoring.coreos.com_alertmanagers.yaml"),
	}
}

// moduleDir returns the folder in the module cache of a module that the module in dir requires. It downloads the module
// if necessary.
func moduleDir(t testing.TB, dir, module string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module)
	cmd.Dir = dir
	answer, err := cmd.Output()
	if err != nil {
		t.Fatalf("get module %s: %v\n%s", module, err, answer)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(answer, &downloaded); err != nil || downloaded.Dir == "" {
		t.Fatalf("get module %s: %v\n%s", module, err, answer)
	}
	return downloaded.Dir
}
