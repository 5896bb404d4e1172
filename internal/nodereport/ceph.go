package nodereport

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Mount is a mounted volume.
type Mount struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Type   string `json:"type"`
}

const (
	// mounts lists the mounts in the host's own namespace.
	mounts    = "/proc/1/mounts"
	maxCeph   = 15
	maxMounts = 4 << 20
)

// ceph adds the mounted volumes of Ceph to the report, each once.
func (h Host) ceph(r *Report) {
	content, err := os.ReadFile(filepath.Join(h.Root, mounts))
	if err == nil && len(content) > maxMounts {
		err = fmt.Errorf("%s has %d bytes", mounts, len(content))
	}
	if err != nil {
		h.addMissing(r, "mounted Ceph volumes", err)
		return
	}
	found := cephMounts(string(content))
	r.OmittedCephMounts = max(0, len(found)-maxCeph)
	r.Ceph = found[:min(len(found), maxCeph)]
	for i, m := range r.Ceph {
		r.Ceph[i] = Mount{truncated(m.Source), truncated(m.Target), truncated(m.Type)}
	}
}

func cephMounts(content string) (found []Mount) {
	for line := range strings.Lines(content) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		mount := Mount{Source: unescape(fields[0]), Target: unescape(fields[1]), Type: fields[2]}
		of := mount.Type == "ceph" || strings.HasPrefix(mount.Type, "fuse.ceph") || strings.HasPrefix(mount.Source, "/dev/rbd")
		again := slices.ContainsFunc(found, func(m Mount) bool { return m.Source == mount.Source })
		if of && !again {
			found = append(found, mount)
		}
	}
	return found
}

// unescape decodes the kernel's octal escapes for spaces and the like: "\040".
func unescape(text string) string {
	var plain strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				plain.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		plain.WriteByte(text[i])
	}
	return plain.String()
}
