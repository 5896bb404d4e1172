package miniosim

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/replicatedhq/ekco/internal/minio"
	"github.com/replicatedhq/ekco/internal/podexec"
)

// driveMounts and driveVolumes are the containers and the volumes of each pod of MinIO.
var (
	driveMounts  = json.RawMessage(`[{"name":"minio","volumeMounts":[{"name":"data","mountPath":"/data"}]}]`)
	driveVolumes = json.RawMessage(`[{"name":"data","persistentVolumeClaim":{"claimName":"data"}}]`)
)

// nested are the objects below other objects on the drives of each replica, by pod name. The name "" means standalone
// MinIO. Only a search of the drives finds these objects.
type nested map[string][]minio.Nested

// Nest puts an object below another object on all drives of the highly available MinIO, or of standalone MinIO.
func (m *MinIO) Nest(single bool, one minio.Nested) {
	drives := []string{""}
	if !single {
		drives = nil
		for pod := range m.running() {
			drives = append(drives, pod)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, drive := range drives {
		m.nested[drive] = append(m.nested[drive], one)
	}
}

// Unnest removes an object that is below another object.
func (m *MinIO) Unnest(one minio.Nested) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for drive := range m.nested {
		m.nested[drive] = slices.DeleteFunc(m.nested[drive], func(other minio.Nested) bool { return one == other })
	}
}

// Forget removes the objects below other objects from the drive of a replica, as if the drive had been restored.
func (m *MinIO) Forget(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.nested, minio.PodRef(Namespace, i).Name)
}

// HideDrives makes programs in pods fail, or work again.
func (m *MinIO) HideDrives(hidden bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hidden = hidden
}

// Exec implements [minio.Servers]: it searches a drive.
func (m *MinIO) Exec(_ context.Context, pod podexec.Pod, _ []string) (stdout, stderr []byte, exitCode int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hidden {
		return nil, []byte("cannot read /data"), 1, nil
	}
	drive := pod.Name
	if !strings.HasPrefix(drive, "ha-") {
		drive = ""
	}
	if pod.Container != "minio" {
		return nil, nil, 0, errors.New("no such container")
	}
	for _, one := range m.nested[drive] {
		stdout = append(stdout, "\x00\x00"+one.Bucket+"/"+one.Above+"\x00"+one.Bucket+"/"+one.Key+"\x00"...)
	}
	return stdout, nil, 0, nil
}
