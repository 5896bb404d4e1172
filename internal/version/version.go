// Package version has the version of this EKCO.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
)

// version and gitSHA are set by the linker: -X …/internal/version.version=v1.2.3.
var (
	version = "v0.29.0"
	gitSHA  = ""
)

// Info describes a binary: its version, its commit and how it was built.
type Info struct {
	// Version is a semantic version with a leading v.
	Version string `json:"version"`
	// GitSHA is the commit, shortened to 12 digits, with "-dirty" if the tree had changes; empty if unknown.
	GitSHA string `json:"git_sha,omitempty"`
	Go     string `json:"go"`
	// Platform is os/architecture.
	Platform string `json:"platform"`
}

// Get returns the version the linker set, and the commit from the linker or
// from the build information.
func Get() Info {
	info := Info{Version: version, GitSHA: gitSHA, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !strings.HasPrefix(info.Version, "v") {
		info.Version = "v" + info.Version
	}
	if info.GitSHA == "" {
		info.GitSHA = commit()
	}
	return info
}

// commit returns the commit that the Go tool recorded.
func commit() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var revision, dirty string
	for _, setting := range build.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value[:min(12, len(setting.Value))]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = "-dirty"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + dirty
}

// String returns the version line.
func (i Info) String() string {
	if i.GitSHA == "" {
		return fmt.Sprintf("EKCO %s (%s, %s)", i.Version, i.Go, i.Platform)
	}
	return fmt.Sprintf("EKCO %s (commit %s, %s, %s)", i.Version, i.GitSHA, i.Go, i.Platform)
}
